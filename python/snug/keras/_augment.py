"""Layers that change pictures at random while training, those that are a few functions of keras.ops: the engine has no rows of their own."""
import functools

from snug import _C
from snug._lazy import tf
from snug._types import Peek
from snug.keras import _symbolic, random
from snug.keras._layer import Layer


def _bounds(factor, low=0.0, high=1.0):
    """One number is the upper bound."""
    if isinstance(factor, (list, tuple)):
        if len(factor) != 2 or not low <= factor[0] <= factor[1] <= high:
            raise ValueError(f"The `factor` argument should be a number (or a list of two numbers) in the range [{low}, {high}]."
                             f" Received: factor={factor}")
        return tuple(factor)
    return (low if low >= 0 else -abs(factor), abs(factor)) if low else (0.0, factor)


class _Random(Layer):
    """`call` sees a batch of pictures in floats; `_change` says what becomes of them. Labels may come along in a dict."""
    _keras_module = "keras.layers"
    _default_training = True
    _settings = ()

    def __init__(self, seed=None, data_format=None, **kwargs):
        if data_format == "channels_first":
            raise NotImplementedError(f"{type(self).__name__}: Snug has pictures with their channels last")
        super().__init__(**kwargs)
        self.seed = seed
        self.__dict__.update(_draws=None, _count=0)

    def call(self, data, training=True):
        images = data["images"] if isinstance(data, dict) else data
        images = tf.cast(tf.convert_to_tensor(images), self.compute_dtype)
        if training:
            single = len(images.shape) == 3
            images, labels = self._changed(tf.expand_dims(images, 0) if single else images, data.get("labels") if isinstance(data, dict) else None)
            images = tf.squeeze(images, 0) if single else images
        elif isinstance(data, dict):
            labels = data.get("labels")
        return images if not isinstance(data, dict) else {**data, "images": images, **({"labels": labels} if "labels" in data else {})}

    def _changed(self, images, labels):
        return self._change(images), labels

    def _normal(self, images, shape):
        """With a seed they are what a layer of the engine's with this seed adds: others at each call, in traces and pipelines, too."""
        if self.seed is None:
            return tf.random.normal(shape, dtype=images.dtype)
        blank = tf.zeros(shape)
        if hasattr(images, "_slot"):        # an element's: what is not made of it would be drawn once for all
            blank = tf.cast(tf.zeros_like(tf.reshape(images, (-1,))[0]), "float32") + blank
        return tf.cast(self._noise()(blank, training=True), images.dtype)

    def _noise(self):
        if self._draws is None:
            from snug.keras import layers
            self.__dict__["_draws"] = layers.GaussianNoise(1.0, seed=self.seed, name=f"{self.name}_draws", dtype="float32")
        return self._draws

    def _counters(self):
        def take(n):
            if n >= 0:
                self._noise()._engine().set_draws(n)
        noise = -1 if self._draws is None or self._draws._c is None else self._draws._c.draws()
        return Layer._counters(self) + [(noise, take), (self._count, functools.partial(self.__dict__.__setitem__, "_count"))]

    def _draw(self, images, low=0.0, high=1.0, shape=None):
        shape = (images.shape[0], 1, 1, 1) if shape is None else shape
        if self.seed is None:
            return tf.random.uniform(shape, low, high, dtype=images.dtype)
        share = 0.5 + 0.5 * tf.math.erf(self._normal(images, shape) * 0.5 ** 0.5)
        return low + (high - low) * tf.minimum(share, 1.0 - 2.0 ** -24)

    def _pair(self):
        """The seed of a draw that the host makes, or None: the recorder's. It counts in Python, so no trace may hold it."""
        if self.seed is None:
            return None
        if _C.is_capturing() or _C.is_tracing():
            raise Peek
        self.__dict__["_count"] += 1
        return int(self.seed), self._count

    def _chance(self, images, bounds):
        """Whether each picture is changed."""
        return self._draw(images) < self._draw(images, *bounds)

    def compute_output_shape(self, input_shape):
        return input_shape

    def _symbolic_call(self, args, kwargs):
        outputs = _symbolic._map(lambda t: _symbolic.KerasTensor(t.shape, self.compute_dtype), args[0])
        self._nodes.append(_symbolic.Node(self, args, kwargs, outputs))
        return outputs

    def get_config(self):
        return {**Layer.get_config(self), **{k: getattr(self, k) for k in self._settings}}


class _Ranged(_Random):
    """With a factor and a range of values."""
    _settings = ("factor", "value_range", "seed")
    _low = 0.0

    def __init__(self, factor=1.0, value_range=(0, 255), seed=None, **kwargs):
        super().__init__(seed=seed, **kwargs)
        self.factor, self.value_range = _bounds(factor, self._low), tuple(value_range)

    def _to(self, images, low, high):
        a, b = self.value_range
        return (images - a) / (b - a) * (high - low) + low

    def _from(self, images, low, high):
        a, b = self.value_range
        return (images - low) / (high - low) * (b - a) + a

    def _clip(self, images):
        return tf.clip_by_value(images, float(self.value_range[0]), float(self.value_range[1]))


class RandomGrayscale(_Random):
    _takes_picture = True
    _settings = ("factor", "seed")

    def __init__(self, factor=0.5, seed=None, **kwargs):
        super().__init__(seed=seed, **kwargs)
        if not 0 <= factor <= 1:
            raise ValueError(f"`factor` should be between 0 and 1. Received: factor={factor}")
        self.factor = factor

    def _change(self, images):
        return tf.where(self._draw(images) < self.factor, tf.image.rgb_to_grayscale(images), images)


class RandomInvert(_Ranged):
    def _change(self, images):
        return tf.where(self._chance(images, self.factor), self.value_range[1] - images, images)


class Solarization(_Random):
    _settings = ("addition_factor", "threshold_factor", "value_range", "seed")

    def __init__(self, addition_factor=0.0, threshold_factor=0.0, value_range=(0, 255), seed=None, **kwargs):
        super().__init__(seed=seed, **kwargs)
        self.addition_factor, self.threshold_factor = _bounds(addition_factor), _bounds(threshold_factor)
        self.value_range = tuple(value_range)

    def _change(self, images):
        low, high = self.value_range
        x = (images - low) / (high - low) * 255.0
        x = tf.clip_by_value(x + self._draw(images, self.addition_factor[0], self.addition_factor[1] * 255), 0.0, 255.0)
        x = tf.where(x < self._draw(images, self.threshold_factor[0], self.threshold_factor[1] * 255), x, 255.0 - x)
        return x / 255.0 * (high - low) + low


class RandomPosterization(_Ranged):
    def __init__(self, factor, value_range=(0, 255), seed=None, **kwargs):
        super().__init__(1.0, value_range, seed, **kwargs)
        self.factor = tuple(factor) if isinstance(factor, (list, tuple)) else (1, factor)

    def _change(self, images):
        bits = tf.floor(self._draw(images, *self.factor)) if self.factor[0] != self.factor[1] else float(self.factor[0])
        step = tf.pow(2.0, 8.0 - bits)
        return self._from(tf.floor(tf.floor(self._to(images, 0, 255)) / step) * step, 0, 255)


class RandomSharpness(_Ranged):
    def _change(self, images):
        a, b = 1 / 13, 5 / 13
        kernel = tf.tile(tf.reshape(tf.constant([[a, a, a], [a, b, a], [a, a, a]], dtype=images.dtype), (3, 3, 1, 1)), (1, 1, images.shape[-1], 1))
        smooth = tf.nn.depthwise_conv2d(images, kernel, (1, 1, 1, 1), "SAME")
        return self._clip(images + (1.0 - 2.0 * self._draw(images, *self.factor)) * (smooth - images))


class RandomColorDegeneration(_Ranged):
    def _change(self, images):
        return self._clip(images + self._draw(images, *self.factor) * (tf.image.rgb_to_grayscale(images) - images))


class RandomHue(_Ranged):
    def _change(self, images):
        turn = tf.where(self._draw(images) > 0.5, -1.0, 1.0) * self._draw(images, *self.factor) * 0.5
        hsv = tf.image.rgb_to_hsv(self._to(images, 0, 1))
        h = tf.math.floormod(hsv[..., :1] + turn, 1.0)
        return self._from(tf.clip_by_value(tf.image.hsv_to_rgb(tf.concat([h, hsv[..., 1:]], -1)), 0.0, 1.0), 0, 1)


class RandomSaturation(_Ranged):
    def _change(self, images):
        f = self._draw(images, *self.factor)
        hsv = tf.image.rgb_to_hsv(images)
        s = tf.clip_by_value(hsv[..., 1:2] * (f / (1.0 - f + 1e-7)), float(self.value_range[0]), float(self.value_range[1]))
        return tf.image.hsv_to_rgb(tf.concat([hsv[..., :1], s, hsv[..., 2:]], -1))


class RandomColorJitter(_Random):
    """Brightness, contrast, saturation and hue, each by its own layer."""
    _settings = ("value_range", "brightness_factor", "contrast_factor", "saturation_factor", "hue_factor", "seed")

    def __init__(self, value_range=(0, 255), brightness_factor=None, contrast_factor=None, saturation_factor=None, hue_factor=None, seed=None,
                 **kwargs):
        from snug.keras import layers
        super().__init__(seed=seed, **kwargs)
        self.value_range, self.brightness_factor, self.contrast_factor = value_range, brightness_factor, contrast_factor
        self.saturation_factor, self.hue_factor = saturation_factor, hue_factor
        self._parts = [make for make in (
            layers.RandomBrightness(brightness_factor, value_range=value_range, seed=seed) if brightness_factor is not None else None,
            layers.RandomContrast(contrast_factor, seed=seed) if contrast_factor is not None else None,
            RandomSaturation(saturation_factor, value_range, seed) if saturation_factor is not None else None,
            RandomHue(hue_factor, value_range, seed) if hue_factor is not None else None) if make is not None]

    def _change(self, images):
        for part in self._parts:
            images = part(images, training=True)
        return images


class AutoContrast(_Random):
    _settings = ("value_range",)

    def __init__(self, value_range=(0, 255), **kwargs):
        super().__init__(**kwargs)
        self.value_range = tuple(value_range)

    def _change(self, images):
        low, high = self.value_range
        x = (images - low) / (high - low) * 255.0
        least, most = tf.reduce_min(x, (1, 2), keepdims=True), tf.reduce_max(x, (1, 2), keepdims=True)
        x = tf.where(most > least, tf.clip_by_value((x - least) * tf.math.divide_no_nan(255.0, most - least), 0.0, 255.0), x)
        return x / 255.0 * (high - low) + low

    def call(self, data, training=True):
        """While predicting, too."""
        return super().call(data, training=True)


class Equalization(AutoContrast):
    _settings = ("value_range", "bins")

    def __init__(self, value_range=(0, 255), bins=256, **kwargs):
        super().__init__(value_range, **kwargs)
        self.bins = bins

    def call(self, data, training=True):
        return _Random.call(self, data, training)

    def _channel(self, x):
        """A channel of all pictures whose values are equally frequent, as far as they can be."""
        at = tf.cast(tf.clip_by_value(x / 255.0 * (self.bins - 1), 0.0, self.bins - 1.0), "int32")
        counts = tf.math.unsorted_segment_sum(tf.ones_like(tf.reshape(x, (-1,))), tf.reshape(at, (-1,)), self.bins)
        sums = tf.cumsum(counts)
        first = tf.reduce_min(tf.where(sums > 0, sums, sums[-1]))
        table = tf.clip_by_value(tf.round(tf.math.divide_no_nan((sums - first) * 255.0, sums[-1] - first)), 0.0, 255.0)
        return tf.where(sums[-1] > first, tf.gather(table, at), x)

    def _change(self, images):
        low, high = self.value_range
        x = (images - low) / (high - low) * 255.0
        return tf.stack([self._channel(c) for c in tf.unstack(x, axis=-1)], -1) / 255.0 * (high - low) + low


class _Boxes(_Random):
    def _mask(self, images, wide, high):
        """[N, H, W, 1]: within a box of these shares of the sides, anywhere in the picture."""
        n, h, w = images.shape[:3]
        made = []
        for share, extent, shape in ((high, h, (1, h, 1, 1)), (wide, w, (1, 1, w, 1))):
            length = share * extent
            start = self._draw(images) * (extent - length)
            at = tf.reshape(tf.range(extent, dtype=images.dtype), shape)
            made.append((start <= at) & (start + length > at))
        return made[0] & made[1]


class RandomErasing(_Boxes):
    _settings = ("factor", "scale", "fill_value", "value_range", "seed")

    def __init__(self, factor=1.0, scale=(0.02, 0.33), fill_value=None, value_range=(0, 255), seed=None, **kwargs):
        super().__init__(seed=seed, **kwargs)
        self.factor, self.scale, self.fill_value, self.value_range = _bounds(factor), tuple(scale), fill_value, tuple(value_range)

    def _change(self, images):
        mask = self._mask(images, tf.sqrt(self._draw(images, *self.scale)), tf.sqrt(self._draw(images, *self.scale)))
        fill = self.fill_value
        if fill is None:
            noise = self._normal(images, images.shape)
            fill = tf.clip_by_value(noise * (self.value_range[1] - self.value_range[0]), *map(float, self.value_range))
        return tf.where(mask & self._chance(images, self.factor), tf.cast(fill, images.dtype), images)


class MixUp(_Random):
    _settings = ("alpha", "seed")

    def __init__(self, alpha=0.2, seed=None, **kwargs):
        super().__init__(seed=seed, **kwargs)
        self.alpha = alpha

    def _changed(self, images, labels):
        n = images.shape[0]
        order, share = random.shuffle(tf.range(n), seed=self._pair()), random.beta((n,), self.alpha, self.alpha, images.dtype, self._pair())
        images = _mixed(images, order, tf.reshape(share, (-1, 1, 1, 1)))
        return images, None if labels is None else _mixed(tf.cast(labels, images.dtype), order, tf.reshape(share, (-1, 1)))


def _mixed(x, order, share):
    return share * x + (1.0 - share) * tf.gather(x, order)


class CutMix(_Boxes):
    _settings = ("factor", "seed")

    def __init__(self, factor=1.0, seed=None, **kwargs):
        super().__init__(seed=seed, **kwargs)
        self.factor = _bounds(factor)

    def _changed(self, images, labels):
        n = images.shape[0]
        alpha = max(self.factor[1], 1e-3)
        side = tf.reshape(tf.sqrt(1.0 - random.beta((n,), alpha, alpha, images.dtype, self._pair())), (-1, 1, 1, 1))
        mask, order = self._mask(images, side, side), random.shuffle(tf.range(n), seed=self._pair())
        share = 1.0 - tf.reduce_mean(tf.cast(mask, images.dtype), (1, 2))
        images = tf.where(mask, tf.gather(images, order), images)
        return images, None if labels is None else _mixed(tf.cast(labels, images.dtype), order, share)


class RandomGaussianBlur(_Ranged):
    _settings = ("factor", "kernel_size", "sigma", "value_range", "seed")

    def __init__(self, factor=1.0, kernel_size=3, sigma=1.0, value_range=(0, 255), seed=None, **kwargs):
        super().__init__(factor, value_range, seed, **kwargs)
        self.kernel_size, self.sigma = kernel_size, _bounds(sigma)

    def _change(self, images):
        from snug.keras import _ops_image
        sigma = tf.unstack(tf.cast(self._draw(images, *self.sigma, shape=(2,)), "float32") + 1e-6)
        return tf.where(self._chance(images, self.factor), self._clip(_ops_image.gaussian_blur(images, self.kernel_size, sigma)), images)


class _Warped(_Random):
    _settings = ("interpolation", "fill_mode", "fill_value", "seed")

    def __init__(self, interpolation="bilinear", fill_mode="constant", fill_value=0.0, seed=None, **kwargs):
        super().__init__(seed=seed, **kwargs)
        self.interpolation, self.fill_mode, self.fill_value = interpolation, fill_mode, fill_value

    def _warp(self, images, transforms):
        return _C.function("keras.ops.image.affine_transform")(images, transforms, self.interpolation, self.fill_mode, self.fill_value)


class RandomShear(_Warped):
    _settings = ("x_factor", "y_factor", *_Warped._settings)

    def __init__(self, x_factor=0.0, y_factor=0.0, interpolation="bilinear", fill_mode="reflect", fill_value=0.0, seed=None, **kwargs):
        super().__init__(interpolation, fill_mode, fill_value, seed, **kwargs)
        self.x_factor, self.y_factor = _bounds(x_factor), _bounds(y_factor)

    def _change(self, images):
        n = images.shape[0]
        turn = tf.where(self._draw(images, shape=(n,)) > 0.5, -1.0, 1.0)
        x, y = (turn * self._draw(images, *f, shape=(n,)) for f in (self.x_factor, self.y_factor))
        one, none = tf.ones((n,)), tf.zeros((n,))
        return self._warp(images, tf.stack([one, x, none, y, one, none, none, none], 1))


class RandomPerspective(_Warped):
    _settings = ("factor", "scale", *_Warped._settings)

    def __init__(self, factor=1.0, scale=1.0, interpolation="bilinear", fill_value=0.0, seed=None, **kwargs):
        super().__init__(interpolation, "constant", fill_value, seed, **kwargs)
        self.factor, self.scale = _bounds(factor), scale

    def _change(self, images):
        from snug.keras import _ops_image
        n, h, w = images.shape[:3]
        corners = tf.constant([[0, 0], [0, h - 1], [w - 1, 0], [w - 1, h - 1]], dtype="float32")
        start = tf.tile(corners[None], (n, 1, 1))
        moved = start + tf.cast(self._draw(images, -0.5, 0.5, (n, 4, 2)), "float32") * self.scale * 0.5 * tf.constant([w, h], dtype="float32")
        made = _ops_image.perspective_transform(images, start, moved, self.interpolation, self.fill_value)
        return tf.where(self._chance(images, self.factor), made, images)


class RandomElasticTransform(_Random):
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("RandomElasticTransform is not in Snug; RandomShear and RandomPerspective bend pictures, too")


class ContrastLimitedAdaptiveHistogramEqualization(_Random):
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("this layer is not in Snug; Equalization and AutoContrast are")


class MaxNumBoundingBoxes(_Random):
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("layers on bounding boxes are not in Snug")


class Pipeline(Layer):
    """Layers one after the other."""
    _keras_module = "keras.layers"

    def __init__(self, layers, name=None):
        super().__init__(name=name)
        self._pipeline_layers = list(layers)

    @property
    def layers(self):
        return list(self._pipeline_layers)

    def append_layer(self, layer):
        self._pipeline_layers.append(layer)

    def call(self, inputs, training=True, mask=None):
        for layer in self._pipeline_layers:
            inputs = layer(inputs, training=training)
        return inputs


class RandAugment(_Random):
    """num_ops of these layers, drawn for each batch."""
    _settings = ("value_range", "num_ops", "factor", "interpolation", "seed")

    def __init__(self, value_range=(0, 255), num_ops=2, factor=0.5, interpolation="bilinear", seed=None, **kwargs):
        from snug.keras import layers
        super().__init__(seed=seed, **kwargs)
        self.value_range, self.num_ops, self.factor, self.interpolation = value_range, num_ops, factor, interpolation
        f = factor if isinstance(factor, (int, float)) else factor[1]
        own = {"seed": seed}
        self._parts = [RandomShear(f, f, interpolation, **own), layers.RandomTranslation(f, f, fill_mode="constant", **own),
                       layers.RandomRotation(f / 6, fill_mode="constant", **own), layers.RandomBrightness(f, value_range=value_range, **own),
                       RandomColorDegeneration(f, value_range, **own), layers.RandomContrast(f, **own), RandomSharpness(f, value_range, **own),
                       RandomPosterization((4, 8), value_range, **own), Solarization(f, f, value_range, **own), AutoContrast(value_range),
                       Equalization(value_range)]

    def _change(self, images):
        """Which ones is drawn for the batch; each is worked out for those alone."""
        picks = random.randint((self.num_ops,), 0, len(self._parts), seed=self._pair())
        for pick in picks.numpy():
            images = self._parts[int(pick)](images, training=True)
        return images


class AugMix(_Random):
    """A mixture of chains of changes, mixed again with the picture itself."""
    _settings = ("value_range", "num_chains", "chain_depth", "factor", "alpha", "all_ops", "interpolation", "seed")

    def __init__(self, value_range=(0, 255), num_chains=3, chain_depth=3, factor=0.3, alpha=1.0, all_ops=True, interpolation="bilinear", seed=None,
                 **kwargs):
        super().__init__(seed=seed, **kwargs)
        self.value_range, self.num_chains, self.chain_depth, self.factor = value_range, num_chains, chain_depth, factor
        self.alpha, self.all_ops, self.interpolation = alpha, all_ops, interpolation
        self._one = RandAugment(value_range, 1, factor, interpolation, seed)

    def _change(self, images):
        n = images.shape[0]
        weights = random.gamma((n, self.num_chains), self.alpha, images.dtype, self._pair())
        weights = weights / tf.reduce_sum(weights, 1, keepdims=True)
        share, mixed = tf.reshape(random.beta((n,), self.alpha, self.alpha, images.dtype, self._pair()), (-1, 1, 1, 1)), 0.0
        for i in range(self.num_chains):
            chain = images
            for _ in range(self.chain_depth):
                chain = self._one(chain, training=True)
            mixed = mixed + tf.reshape(weights[:, i], (-1, 1, 1, 1)) * chain
        return share * images + (1.0 - share) * mixed


NAMES = [name for name, value in list(globals().items()) if isinstance(value, type) and issubclass(value, Layer) and not name.startswith("_")
         and name != "Layer"]
