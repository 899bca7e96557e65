"""keras.ops that programs ask for less often."""
import numpy as np
from keras import Input, ops
from parity import check

r = np.random.RandomState(0)
x = r.randn(3, 4).astype("float32")
n = np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, 2.0]], "float32")

for name in ("hanning", "hamming", "blackman", "bartlett"):
    check(name, getattr(ops, name)(8), 1e-5)
check("kaiser", ops.kaiser(6, 5.0), 1e-4)
check("logspace", ops.logspace(0.0, 2.0, 5), 1e-4)
check("geomspace", ops.geomspace(1.0, 16.0, 5), 1e-4)
check("vander", ops.vander(np.array([1.0, 2.0, 3.0], "float32")), 1e-5)
check("diagflat", ops.diagflat(np.array([1.0, 2.0], "float32")))
check("dstack", ops.dstack([x, x]))
check("array_split", list(ops.array_split(x, 3, axis=1)))
check("hsplit", list(ops.hsplit(x, 2)))
check("unravel_index", [ops.convert_to_numpy(i).tolist() for i in ops.unravel_index(np.array([1, 5, 7]), (3, 4))])
check("select", ops.select([x > 0.5, x > 0], [x, x * 10], -1.0))
check("allclose", bool(ops.allclose(x, x + 1e-9)))
check("signbit", ops.signbit(x))
check("ldexp", ops.ldexp(x, np.array([1, 2, 3, 4])), 1e-5)
check("gcd", ops.gcd(np.array([12, 18, 7]), np.array([8, 27, 14])))
check("lcm", ops.lcm(np.array([4, 6]), np.array([6, 8])))
check("percentile", ops.percentile(x, 25, axis=1), 1e-5)
check("nan", [ops.nanargmax(n, axis=1), ops.nancumsum(n, axis=1), ops.nancumprod(n, axis=0)])
check("corrcoef", ops.corrcoef(x), 1e-4)
check("correlate", ops.correlate(x[0], x[1][:2], mode="full"), 1e-5)
check("histogram", [ops.convert_to_numpy(a) for a in ops.histogram(x[0], bins=4, range=(-2.0, 2.0))], 1e-5)
check("cdist", ops.cdist(x, x[:2]), 1e-4)
check("rearrange", ops.rearrange(x, "a (b c) -> c (a b)", b=2))
check("adaptive", ops.adaptive_average_pool(ops.convert_to_tensor(r.rand(1, 5, 5, 2).astype("float32")), 2), 1e-5)
check("segment_min", ops.segment_min(np.array([3.0, 1.0, 2.0], "float32"), np.array([0, 0, 1]), 2))
check("ndim", ops.ndim(x))

p = r.rand(2, 6, 6, 3).astype("float32")
check("patches", ops.image.extract_patches(p, 3))
check("patches with strides", ops.image.extract_patches(p[0], (2, 2), strides=2, padding="same"))
check("resize", ops.image.resize(p, (4, 4)), 1e-5)
check("pad", ops.image.pad_images(p, top_padding=1, left_padding=0, target_height=8, target_width=7)[0, ..., 0])
check("crop", ops.image.crop_images(p, top_cropping=1, left_cropping=2, target_height=3, target_width=3)[0])
check("affine", ops.image.affine_transform(p, np.array([1, 0.2, 0.5, 0, 1, -0.5, 0, 0], "float32"))[0], 1e-4)
check("blur", ops.image.gaussian_blur(p, (3, 3), (1.0, 1.0))[0], 1e-4)
check("coordinates", ops.image.map_coordinates(p[0, ..., 0], np.array([[0.5, 1.5], [1.0, 2.25]], "float32"), order=1), 1e-5)
check("grayscale", ops.image.rgb_to_grayscale(p)[0, 0], 1e-5)

check("floor of whole numbers", [ops.floor(np.array([3, 4])), ops.ceil(np.array([3, 4], "int32"))])
check("nonzero of one axis", [np.asarray(i) for i in ops.nonzero(np.array([0, 3, 0, 5]))])
check("nonzero of two", [np.asarray(i) for i in ops.nonzero(np.array([[0, 3], [4, 0]]))])
check("linspace of tensors", ops.linspace(ops.log(1.0), ops.log(ops.array(8.0)), 4), 1e-5)
check("linspace without its end", ops.linspace(ops.array(0.0), ops.array(1.0), 4, endpoint=False), 1e-5)

# Windows of pictures as columns, and back; angles.
pictures = np.arange(2 * 2 * 6 * 7, dtype="float32").reshape(2, 2, 6, 7) % 11
for name, how in (("plain", {"kernel_size": 2}), ("wide", {"kernel_size": (2, 3), "dilation": (2, 1), "padding": 1, "stride": (2, 3)}),
                  ("apart", {"kernel_size": 2, "stride": 3})):
    columns = ops.unfold(pictures, **how)
    check(f"unfold {name}", columns)
    check(f"fold {name}", ops.fold(columns, output_size=(6, 7), **how))
check("unfolded symbol", ops.unfold(Input((2, 6, 7)), 2).shape)
check("angle", [ops.angle(np.array([1.0, -1.0, 0.0], "float32")), ops.angle(np.array([1 + 1j, -1j, 2]))])
