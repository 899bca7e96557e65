"""keras.wrappers: estimators of scikit-learn, which Snug does not make."""


def _make(name):
    def __init__(self, *args, **kwargs):
        raise ImportError(f"{name} requires `scikit-learn` to be installed. Snug has no wrappers for it: call model.fit and model.predict")
    return type(name, (), {"__init__": __init__, "__module__": __name__})


SKLearnClassifier, SKLearnRegressor, SKLearnTransformer = map(_make, ("SKLearnClassifier", "SKLearnRegressor", "SKLearnTransformer"))
