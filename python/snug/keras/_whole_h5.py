"""Whole models as .h5 files, the older of Keras' two forms: the configuration as attributes of the file, weights in a group per layer."""
import json

from snug._files import _whole
from snug.keras import _hdf5, _serial


def _weights(layer):
    return layer.trainable_weights + layer.non_trainable_weights


def _group(variables):
    """A group of arrays under their variables' paths, which it lists."""
    made, names = _hdf5.Group(), []
    for v in variables:
        name, n = v.path, 1
        while name in names:
            n += 1
            name = f"{v.path}_{n}"
        names.append(name)
        *folders, last = name.split("/")
        at = made
        for folder in folders:
            at = at.setdefault(folder, {})
        at[last] = v.numpy()
    made.attributes["weight_names"] = names
    return made


def _member(tree, name, path):
    """A group of a file's tree; ValueError where it is missing or something else."""
    found = tree.get(name) if isinstance(tree, dict) else None
    if not isinstance(found, _hdf5.Group):
        raise ValueError(f"'{path}': it has no group '{name}': it is damaged, or no whole model")
    return found


def _arrays(group, path):
    """The arrays of such a group, in its order."""
    found = []
    for name in group.attributes.get("weight_names", []):
        at = group
        for word in name.split("/"):
            at = at.get(word) if isinstance(at, dict) else None
        if not hasattr(at, "shape"):
            raise ValueError(f"'{path}': it has no array '{name}': it is damaged")
        found.append(at)
    return found


def _training(model):
    config = dict(model.get_compile_config())
    config["optimizer_config"] = config.pop("optimizer")
    return json.dumps(config)


def save(model, path, include_optimizer=True):
    from snug.keras import __version__
    about = {"keras_version": __version__, "backend": "tensorflow"}
    config = {"class_name": _serial.serialize_keras_object(model)["class_name"], "config": _serial.to_config(model.get_config())}
    tree = _hdf5.Group(**about, model_config=json.dumps(config))
    layers = {layer.name: _group(_weights(layer)) for layer in model.layers}
    tree["model_weights"] = _hdf5.Group({**layers, "top_level_model_weights": _group(model._own)}, layer_names=list(layers), **about)
    if include_optimizer and model.compiled and model.optimizer is not None:
        tree.attributes["training_config"] = _training(model)
        if model.optimizer.built:
            tree["optimizer_weights"] = _hdf5.Group(_slots(model.optimizer), weight_names=_slot_names(model.optimizer))
    with _whole(path) as part:
        _hdf5.write(part, tree)


def _slot_names(optimizer):
    return [f"variable_{i}" for i in range(len(optimizer.variables))]


def _slots(optimizer):
    return {name: v.numpy() for name, v in zip(_slot_names(optimizer), optimizer.variables)}


def load_weights(model, tree, path, skip_mismatch=False):
    """From the group that lists layers."""
    names = [n for n in tree.attributes.get("layer_names", []) if _member(tree, n, path).attributes.get("weight_names")]
    layers = [layer for layer in model.layers if _weights(layer)]
    if len(names) != len(layers):
        raise ValueError(f"Layer count mismatch when loading weights from file. Model expected {len(layers)} layers, found {len(names)}"
                         f" saved layers in '{path}'.")
    pairs = [(_weights(layer), tree[name]) for layer, name in zip(layers, names)]
    if "top_level_model_weights" in tree:
        pairs.append((model._own, _member(tree, "top_level_model_weights", path)))
    for variables, group in pairs:
        arrays = _arrays(group, path)
        if len(arrays) != len(variables):
            raise ValueError(f"'{path}' has {len(arrays)} arrays for a layer of {len(variables)} weights")
        for v, a in zip(variables, arrays):
            if tuple(v.shape) == a.shape:
                v.assign(a)
            elif not skip_mismatch:
                raise ValueError(f"weight '{v.path}' is {tuple(v.shape)}, in '{path}' it is {a.shape}")


def load(path, custom_objects=None, compile=True):
    tree = _hdf5.read(path)
    text = getattr(tree, "attributes", {}).get("model_config")
    if text is None:
        raise ValueError(f"No model config found in the file at {path}.")
    with _serial.custom_object_scope(custom_objects):
        model = _serial.deserialize_keras_object(json.loads(text))
        load_weights(model, _member(tree, "model_weights", path), path)
        settings = tree.attributes.get("training_config")
        if compile and settings is not None:
            settings = json.loads(settings)
            settings["optimizer"] = settings.pop("optimizer_config")
            model.compile_from_config(settings)
            if "optimizer_weights" in tree:
                _load_slots(model, _arrays(_member(tree, "optimizer_weights", path), path))
    return model


def _load_slots(model, arrays):
    model.optimizer.build(model.trainable_variables)
    variables = model.optimizer.variables
    if len(arrays) == len(variables):        # one of another kind starts anew, as Keras' does
        for v, a in zip(variables, arrays):
            v.assign(a)
