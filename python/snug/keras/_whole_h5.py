"""Whole models as .h5 files, the older of Keras' two forms: the configuration as attributes of the file, weights in a group per layer."""
import json

from snug._files import _whole, assign_all, damaged, parse_json, stored
from snug.keras import _hdf5, _serial


def _weights(layer):
    return layer.trainable_weights + layer.non_trainable_weights


def _group(variables):
    """A group of arrays under their variables' paths, which it lists."""
    made, names = _hdf5.Group(), {}
    for v in variables:
        name, n = v.path, 1
        while name in names:
            n += 1
            name = f"{v.path}_{n}"
        names[name] = True
        *folders, last = name.split("/")
        at = made
        for folder in folders:
            at = at.setdefault(folder, {})
        at[last] = stored(v)
    _put_names(made, "weight_names", list(names))
    return made


def _put_names(group, word, names):
    """A list of names as an attribute; one that is longer than an attribute may be goes into several, numbered, as Keras has them."""
    if len(names) <= _hdf5.MOST_TEXTS:
        group.attributes[word] = names
        return
    for k, at in enumerate(range(0, len(names), _hdf5.MOST_TEXTS)):
        group.attributes[f"{word}{k}"] = names[at:at + _hdf5.MOST_TEXTS]


def _member(tree, name, path):
    """A group of a file's tree; ValueError where it is missing or something else."""
    found = tree.get(name) if isinstance(tree, _hdf5.Found) else None
    if not isinstance(found, _hdf5.Found):
        raise ValueError(f"'{path}': it has no group '{name}': it is damaged, or no whole model")
    return found


def _arrays(group, path):
    """The arrays of such a group, in its order."""
    found = []
    for name in _names(group, "weight_names", path):
        at = group
        for word in name.split("/"):
            at = at.get(word) if isinstance(at, _hdf5.Found) else None
        if not isinstance(at, _hdf5.Array):
            raise ValueError(f"'{path}': it has no array '{name}': it is damaged")
        found.append(at)
    return found


def _names(group, word, path):
    """A list of names among a group's attributes, in one or in numbered ones."""
    found, k = group.attributes.get(word), 0
    if found is None:
        found = []
        while isinstance(part := group.attributes.get(f"{word}{k}"), list):
            found += part
            k += 1
    if not isinstance(found, list):
        raise ValueError(f"'{path}': {word} is no list of names: it is damaged")
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
    tree["model_weights"] = _hdf5.Group({**layers, "top_level_model_weights": _group(model._own)}, **about)
    _put_names(tree["model_weights"], "layer_names", list(layers))
    if include_optimizer and model.compiled and model.optimizer is not None:
        tree.attributes["training_config"] = _training(model)
        if model.optimizer.built:
            tree["optimizer_weights"] = _hdf5.Group(_slots(model.optimizer))
            _put_names(tree["optimizer_weights"], "weight_names", _slot_names(model.optimizer))
    with _whole(path) as part:
        _hdf5.write(part, tree)


def _slot_names(optimizer):
    return [f"variable_{i}" for i in range(len(optimizer.variables))]


def _slots(optimizer):
    return {name: stored(v) for name, v in zip(_slot_names(optimizer), optimizer.variables)}


def load_weights(model, tree, path, skip_mismatch=False):
    """From the group that lists layers."""
    names = [n for n in _names(tree, "layer_names", path) if _names(_member(tree, n, path), "weight_names", path)]
    layers = [layer for layer in model.layers if _weights(layer)]
    if len(names) != len(layers):
        raise ValueError(f"Layer count mismatch when loading weights from file. Model expected {len(layers)} layers, found {len(names)}"
                         f" saved layers in '{path}'.")
    groups = [(_weights(layer), tree[name]) for layer, name in zip(layers, names)]
    if "top_level_model_weights" in tree:
        groups.append((model._own, _member(tree, "top_level_model_weights", path)))
    pairs = []
    for variables, group in groups:
        arrays = _arrays(group, path)
        if len(arrays) != len(variables):
            raise ValueError(f"'{path}' has {len(arrays)} arrays for a layer of {len(variables)} weights")
        pairs += zip(variables, arrays)
    return assign_all(pairs, path, skip_mismatch)


def load_by_name(model, tree, path, skip_mismatch=False):
    """Of the group that lists layers, those that the model has by name; others stay as they are."""
    import warnings
    pairs = []
    for k, name in enumerate(_names(tree, "layer_names", path)):
        arrays = _arrays(_member(tree, name, path), path)
        for layer in [layer for layer in model.layers if layer.name == name]:
            variables = _weights(layer)
            if len(arrays) == len(variables):
                pairs += zip(variables, arrays)
            elif skip_mismatch:
                warnings.warn(f"Skipping loading of weights for layer #{k} (named {name}) due to mismatch in number of weights. Layer expects"
                              f" {len(variables)} weight(s). Received {len(arrays)} saved weight(s)", stacklevel=2)
            else:
                raise ValueError(f"Weight count mismatch for layer #{k} (named {name}). Layer expects {len(variables)} weight(s). Received"
                                 f" {len(arrays)} saved weight(s)")
    own = _arrays(_member(tree, "top_level_model_weights", path), path) if "top_level_model_weights" in tree else []
    if len(own) == len(model._own):
        pairs += zip(model._own, own)
    elif not skip_mismatch:
        raise ValueError(f"Weight count mismatch for top-level weights of model. Model expects {len(model._own)} top-level weight(s). Received"
                         f" {len(own)} saved top-level weight(s)")
    return assign_all(pairs, path, skip_mismatch)


def load(path, custom_objects=None, compile=True, safe_mode=True):
    with _hdf5.opened(path) as tree, damaged(path), _serial.custom_object_scope(custom_objects), _serial.trusting(not safe_mode):
        text = getattr(tree, "attributes", {}).get("model_config")
        if not isinstance(text, str):
            raise ValueError(f"No model config found in the file at {path}.")
        model = _serial.deserialize_keras_object(parse_json(text, path=path))
        tree.expect(5 * len(model.weights))
        load_weights(model, _member(tree, "model_weights", path), path)
        settings = tree.attributes.get("training_config")
        if compile and isinstance(settings, str):
            settings = parse_json(settings, path=path)
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
            v.assign(a.read())
