"""keras.utils.text_dataset_from_directory: labels, parts, the same files for the same seed."""
import os
import tempfile

import tensorflow as tf
from parity import check, raises
from tensorflow import keras

read = keras.utils.text_dataset_from_directory

with tempfile.TemporaryDirectory() as folder:
    for name in ("pos", "neg"):
        os.makedirs(os.path.join(folder, name))
        for i in range(7):
            with open(os.path.join(folder, name, f"{i}.txt"), "w") as f:
                f.write(f"{name} text {i}")
    with open(os.path.join(folder, "pos", "notes.md"), "w") as f:
        f.write("no text")
    plain = read(folder, batch_size=5, shuffle=False, verbose=False)
    check("classes", plain.class_names)
    check("spec", repr(plain.element_spec))
    check("batches", [(t, l) for t, l in plain])
    check("cut", [t for t, _ in read(folder, batch_size=3, max_length=4, shuffle=False, verbose=False).take(1)])
    check("one hot", [l for _, l in read(folder, label_mode="categorical", shuffle=False, verbose=False)])
    check("binary", [l for _, l in read(folder, label_mode="binary", shuffle=False, verbose=False)])
    check("no labels", [t.shape for t in read(folder, labels=None, shuffle=False, verbose=False)])
    check("single", [(t, l) for t, l in read(folder, batch_size=None, shuffle=False, verbose=False).take(2)])
    check("other order", read(folder, class_names=["pos", "neg"], shuffle=False, verbose=False).class_names)
    parts = [read(folder, validation_split=0.3, subset=s, seed=42, verbose=False) for s in ("training", "validation")]
    check("parts", [sorted(t.decode() for b, _ in p for t in b.numpy()) for p in parts])
    both = read(folder, validation_split=0.3, subset="both", seed=42, verbose=False)
    check("both", [sorted(t.decode() for b, _ in p for t in b.numpy()) for p in both])
    pairs = [(t.decode()[:3], int(n)) for b, l in both[0] for t, n in zip(b.numpy(), l.numpy())]
    check("labels stay with texts", sorted(set(pairs)))
    raises(ValueError, lambda: read(folder, validation_split=0.3, subset="training"))
    raises(ValueError, lambda: read(folder, subset="training", seed=1))
    raises(ValueError, lambda: read(folder, class_names=["pos", "other"]))
    raises(ValueError, lambda: read(folder, labels=[1, 2]))
