"""keras.preprocessing.image.ImageDataGenerator: what does not depend on chance."""
import numpy as np
import tensorflow as tf
from parity import check, raises
from tensorflow.keras.preprocessing.image import ImageDataGenerator, img_to_array

x = np.arange(5 * 4 * 4 * 3, dtype=np.float32).reshape(5, 4, 4, 3)
y = np.array([0, 1, 0, 1, 0])
g = ImageDataGenerator(rescale=1 / 255.0)
it = g.flow(x, y, batch_size=2, shuffle=False)
check("len", len(it))
a, b = next(it)
check("batch", [a, b])
check("next", next(it)[1])
check("last", next(it)[1])
check("again", next(it)[1])
check("item", it[1][1])
check("no labels", ImageDataGenerator().flow(x, batch_size=5, shuffle=False)[0])
check("function", ImageDataGenerator(preprocessing_function=lambda p: p * 0 + 2).flow(x, batch_size=1, shuffle=False)[0])
check("samplewise", ImageDataGenerator(samplewise_center=True, samplewise_std_normalization=True).flow(x, batch_size=1, shuffle=False)[0], 1e-4)
f = ImageDataGenerator(featurewise_center=True, featurewise_std_normalization=True)
f.fit(x)
check("featurewise", f.flow(x, batch_size=2, shuffle=False)[0], 1e-4)
flips = ImageDataGenerator(horizontal_flip=True, vertical_flip=True).flow(x, batch_size=5, shuffle=False)
p = flips[0]
check("flips", all(any(np.array_equal(q, c) for c in (o, o[::-1], o[:, ::-1], o[::-1, ::-1])) for q, o in zip(p, x)))
split = ImageDataGenerator(validation_split=0.4)
check("split", [split.flow(x, y, batch_size=5, shuffle=False, subset=s)[0][1] for s in ("training", "validation")])
check("array", img_to_array(np.arange(4).reshape(2, 2)))
check("weights", [v.shape for v in ImageDataGenerator().flow(x, y, sample_weight=np.ones(5), batch_size=2, shuffle=False)[0]])
check("all", sorted(int(v) for v in np.concatenate([ImageDataGenerator().flow(x, y, batch_size=5, seed=1)[0][1]])))
raises(ValueError, lambda: ImageDataGenerator().flow(x[0], y))
