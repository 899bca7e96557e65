"""keras.applications: networks by name. Their initial weights are random (weights=None), or come from a file that save_weights wrote;
Keras' trained ones would have to be downloaded, which Snug does not do."""
import importlib

_WHERE = {"vgg": "VGG16 VGG19", "resnet": "ResNet50 ResNet101 ResNet152", "resnet_v2": "ResNet50V2 ResNet101V2 ResNet152V2",
          "mobilenet": "MobileNet", "mobilenet_v2": "MobileNetV2", "densenet": "DenseNet121 DenseNet169 DenseNet201",
          "xception": "Xception", "inception_v3": "InceptionV3", "inception_resnet_v2": "InceptionResNetV2",
          "mobilenet_v3": "MobileNetV3Small MobileNetV3Large", "nasnet": "NASNetMobile NASNetLarge",
          "efficientnet": " ".join(f"EfficientNetB{i}" for i in range(8)),
          "efficientnet_v2": " ".join(f"EfficientNetV2{kind}" for kind in ("B0", "B1", "B2", "B3", "S", "M", "L")),
          "convnext": " ".join(f"ConvNeXt{kind}" for kind in ("Tiny", "Small", "Base", "Large", "XLarge"))}
_FROM = {name: module for module, names in _WHERE.items() for name in names.split()}
_MODULES = set(_WHERE) - {"vgg"} | {"imagenet_utils", "vgg16", "vgg19", "resnet50"}


def __getattr__(name):
    if name == "__all__":       # what a star gives
        return __dir__()
    if name in _FROM:
        found = getattr(importlib.import_module(f"{__name__}.{_FROM[name]}"), name)
    elif name in _MODULES:
        found = importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"keras.applications.{name} is not in Snug; there are {', '.join(sorted(_FROM))}")
    globals()[name] = found
    return found


def __dir__():
    return sorted(list(_FROM) + list(_MODULES))
