"""keras.applications.resnet50."""
from snug.keras.applications.resnet import ResNet50, decode_predictions, preprocess_input  # noqa: F401
