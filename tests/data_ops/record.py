#!/usr/bin/env python3
"""Records what TensorFlow gives for functions on files, texts and pictures: one small file NAME.case per case, which
tests/test_data_ops_golden.c replays. usage: record.py [NAME...], with a Python that has TensorFlow 2.21.

A case is lines: "op NAME", "attr NAME BYTES" + the bytes, "in|out TYPE TOLERANCE RANK DIM..." + raw elements (texts: u32
length and bytes each), "end"."""
import os
import struct
import sys
import zlib

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import tensorflow as tf  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"float32": "f32", "float64": "f64", "uint8": "u8", "int32": "i32", "int64": "i64", "bool": "bool", "int8": "i8"}
CASES = {}


def case(name, op, inputs, outputs, tolerance=0.0, **attrs):
    """Inputs and outputs are arrays or texts; attrs are written as the table wants them."""
    CASES[name] = (op, inputs, outputs, tolerance, attrs)


def text_of(value):
    if isinstance(value, bytes):
        return value
    if isinstance(value, (list, tuple)):
        return ("[" + ",".join(str(v) for v in value) + "]").encode()
    return str(value).encode()


def part(word, value, tolerance):
    a = value.numpy() if hasattr(value, "numpy") else value
    if isinstance(a, (bytes, str)) or getattr(a, "dtype", None) == object:
        texts = np.array(a, object)
        head = f"{word} text 0 {texts.ndim} " + " ".join(map(str, texts.shape)) + "\n"
        flat = [t if isinstance(t, bytes) else t.encode() for t in texts.ravel().tolist()]
        return head.encode() + b"".join(struct.pack("<I", len(t)) + t for t in flat)
    a = np.asarray(a)
    head = f"{word} {TYPES[a.dtype.name]} {tolerance} {a.ndim} " + " ".join(map(str, a.shape)) + "\n"
    return head.encode() + a.tobytes()


def write(name):
    op, inputs, outputs, tolerance, attrs = CASES[name]
    out = [f"op {op}\n".encode()]
    for key, value in attrs.items():
        value = text_of(value)
        out.append(f"attr {key} {len(value)}\n".encode() + value + b"\n")
    for value in inputs:
        out.append(part("in", value, 0) + b"\n")
    for value in outputs if isinstance(outputs, (list, tuple)) else [outputs]:
        out.append(part("out", value, tolerance) + b"\n")
    with open(os.path.join(HERE, name + ".case"), "wb") as f:
        f.write(b"".join(out) + b"end\n")


def picture(h, w, c, seed=0):
    """Smooth with some noise, so that codecs have something to do and little to keep."""
    y, x = np.mgrid[0:h, 0:w].astype(np.float64)
    k = np.arange(c)
    rng = np.random.default_rng(seed)
    base = 127 + 90 * np.sin(y[..., None] / (3 + k)) * np.cos(x[..., None] / (5 + k)) + rng.normal(0, 8, (h, w, c))
    return np.clip(base, 0, 255).astype(np.uint8)


def png_file(rows, depth, colour, width=None, interlace=False, **chunks):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    whole = rows.reshape(rows.shape[0], rows.shape[1], -1)
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)] if interlace else [
        (0, 0, 1, 1)]
    data = b"".join(b"\0" + row.tobytes() for y, x, dy, dx in passes for row in whole[y::dy, x::dx] if row.size)
    head = struct.pack(">IIBBBBB", width or rows.shape[1], rows.shape[0], depth, colour, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(
        chunk(k.encode(), v) for k, v in chunks.items()) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def bmp_file(image, top_down=False):
    h, w, c = image.shape
    pixels = image if c == 1 else np.concatenate([image[..., 2::-1], image[..., 3:]], axis=-1)
    rows = [r.tobytes() + b"\0" * (-w * c % 4) for r in pixels]
    data = b"".join(rows if top_down else rows[::-1])
    palette = bytes(v for i in range(256) for v in (i, i, i, 0)) if c == 1 else b""
    first = 54 + len(palette)
    return struct.pack("<2sIHHIIiiHHIIIIII", b"BM", first + len(data), 0, 0, first, 40, w, -h if top_down else h, 1, 8 * c, 0, len(data),
                       2835, 2835, 0, 0) + palette + data


def gif_file(frames, colours, interlace=False):
    """frames: (x, y, indices, transparent). Codes stay as long as they start: a clear code often enough."""
    bits = max(2, (len(colours) - 1).bit_length())
    out = struct.pack("<6sHHBBB", b"GIF89a", frames[0][2].shape[1], frames[0][2].shape[0], 0x80 | (bits - 1), 0, 0)
    out += b"".join(bytes(c) for c in colours) + b"\0\0\0" * ((1 << bits) - len(colours))
    for x, y, index, transparent in frames:
        out += struct.pack("<BBBBHBB", 0x21, 0xf9, 4, 1 if transparent is not None else 0, 0, transparent or 0, 0)
        rows = list(range(index.shape[0]))
        if interlace:
            rows = rows[::8] + rows[4::8] + rows[2::4] + rows[1::2]
        out += struct.pack("<BHHHHB", 0x2c, x, y, index.shape[1], index.shape[0], 0x40 if interlace else 0)
        out += bytes([bits]) + blocks(lzw(index[rows].ravel().tolist(), bits)) + b"\0"
    return out + b"\x3b"


def lzw(values, bits):
    """The usual coder: strings seen before become codes of their own."""
    clear, stream, n = 1 << bits, 0, 0

    def put(code, width):
        nonlocal stream, n
        stream |= code << n
        n += width
    table, width, word = {(i,): i for i in range(clear)}, bits + 1, ()
    put(clear, width)
    for v in values:
        if word + (v,) in table:
            word += (v,)
            continue
        put(table[word], width)
        table[word + (v,)] = len(table) + 2
        if len(table) + 2 > (1 << width):
            width += 1
        word = (v,)
    put(table[word], width)
    put(clear + 1, width)
    return stream.to_bytes(n // 8 + 1, "little")


def blocks(data):
    return b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255))


def more_pictures():
    rgb = picture(9, 7, 3, 11)
    for name, file in {"grey": bmp_file(picture(5, 6, 1)), "rgb": bmp_file(rgb), "alpha": bmp_file(picture(4, 5, 4)),
                       "down": bmp_file(rgb, True)}.items():
        case(f"bmp_{name}", "tf.io.decode_bmp", [file], tf.io.decode_bmp(file))
    rng = np.random.default_rng(5)
    colours = rng.integers(0, 256, (11, 3)).tolist()
    first, second = rng.integers(0, 11, (23, 19)) // 3 * 3, rng.integers(0, 11, (6, 5))
    for name, file in {"one": gif_file([(0, 0, first, None)], colours), "passes": gif_file([(0, 0, first, None)], colours, True),
                       "two": gif_file([(0, 0, first, None), (3, 4, second, None)], colours)}.items():
        case(f"gif_{name}", "tf.io.decode_gif", [file], tf.io.decode_gif(file))
    gif = gif_file([(0, 0, first, None), (0, 0, first[::-1], None)], colours)
    files = {"jpeg": tf.io.encode_jpeg(rgb).numpy(), "png": tf.io.encode_png(rgb).numpy(), "bmp": bmp_file(rgb), "gif": gif}
    for name, file in files.items():
        for animations in (True, False):
            case(f"image_{name}_{animations}", "tf.io.decode_image", [file],
                 tf.io.decode_image(file, expand_animations=animations), 1, expand_animations=animations)
    for channels in (1, 3):
        case(f"image_channels_{channels}", "tf.io.decode_image", [files["png"]],
             tf.io.decode_image(files["png"], channels=channels, expand_animations=False), 1, channels=channels,
             expand_animations=False)
    case("image_float", "tf.io.decode_image", [files["png"]],
         tf.io.decode_image(files["png"], dtype=tf.float32, expand_animations=False), 1e-6, dtype="float32", expand_animations=False)


def pictures():
    rgb, grey = picture(21, 34, 3), picture(13, 9, 1, 1)
    for name, jpeg in {"rgb": tf.io.encode_jpeg(rgb, quality=90), "grey": tf.io.encode_jpeg(grey),
                       "progressive": tf.io.encode_jpeg(rgb, progressive=True),
                       "full": tf.io.encode_jpeg(rgb, chroma_downsampling=False)}.items():
        for channels in (0, 1, 3):
            case(f"jpeg_{name}_{channels}", "tf.io.decode_jpeg", [jpeg], tf.io.decode_jpeg(jpeg, channels=channels), 1,
                 channels=channels)
    jpeg = tf.io.encode_jpeg(picture(40, 56, 3))
    for ratio in (2, 4, 8):
        case(f"jpeg_ratio_{ratio}", "tf.io.decode_jpeg", [jpeg], tf.io.decode_jpeg(jpeg, ratio=ratio), 1, ratio=ratio)
    case("jpeg_plain_upscaling", "tf.io.decode_jpeg", [jpeg], tf.io.decode_jpeg(jpeg, fancy_upscaling=False), 1,
         fancy_upscaling=False)
    case("jpeg_accurate", "tf.io.decode_jpeg", [jpeg], tf.io.decode_jpeg(jpeg, dct_method="INTEGER_ACCURATE"), 1,
         dct_method="INTEGER_ACCURATE")
    for c in (1, 2, 3, 4):
        png = tf.io.encode_png(picture(11, 7, c, c))
        for channels in (0, 1, 2, 3, 4):
            try:
                out = tf.io.decode_png(png, channels=channels)
            except tf.errors.InvalidArgumentError:
                continue
            case(f"png_{c}_{channels}", "tf.io.decode_png", [png], out, 1, channels=channels)
    index = (rgb[..., 0] // 20).astype(np.uint8)
    palette = np.random.default_rng(3).integers(0, 256, (13, 3)).astype(np.uint8).tobytes()
    bits = np.packbits(grey[..., 0] > 127, axis=1)
    wide = (grey[..., 0].astype(np.uint16) * 200).astype(">u2")
    for name, png in {"palette": png_file(index, 8, 3, PLTE=palette), "bits": png_file(bits, 1, 0, width=9),
                      "mask": png_file(index, 8, 3, PLTE=palette, tRNS=bytes([255, 0, 9, 128])),
                      "wide": png_file(wide, 16, 0), "interlaced": png_file(rgb, 8, 2, interlace=True)}.items():
        for channels in (0, 1, 3, 4):
            case(f"png_{name}_{channels}", "tf.io.decode_png", [png], tf.io.decode_png(png, channels=channels), 1,
                 channels=channels)


def example(**features):
    def one(values):
        values = values if isinstance(values, list) else [values]
        if isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Example(features=tf.train.Features(feature={k: one(v) for k, v in features.items()})).SerializeToString()


def flat(parsed):
    """Parts in the order of the dict given to parse: sparse ones are three."""
    out = []
    for value in parsed:
        out += [value.indices, value.values, value.dense_shape] if isinstance(value, tf.SparseTensor) else [value]
    return out


def examples():
    one = example(x=[1.5, -2.0, 3.25, 0.5], label=7, name=b"a\0b", ids=[3, -1, 2 ** 40], words=[b"one", b"", b"three"])
    two = example(x=[0.0, 1.0, 2.0, 3.0], label=-5, name=b"", ids=[9], steps=[1.0, 2.0, 3.0, 4.0])
    spec = {"x": tf.io.FixedLenFeature([2, 2], tf.float32), "label": tf.io.FixedLenFeature([], tf.int64),
            "name": tf.io.FixedLenFeature([], tf.string), "ids": tf.io.VarLenFeature(tf.int64),
            "words": tf.io.VarLenFeature(tf.string), "missing": tf.io.FixedLenFeature([2], tf.float32, [4.0, 0.25]),
            "none": tf.io.FixedLenFeature([], tf.string, "zz")}
    lines = ("fixed f32 [2,2] - x\nfixed i64 [] - label\nfixed text [] - name\nvar i64 [] - ids\nvar text [] - words\n"
             "fixed f32 [2] 4,0.25 missing\nfixed text [] x7a7a none")
    for name, text in {"one": one, "two": two}.items():
        parsed = tf.io.parse_single_example(text, spec)
        case(f"example_{name}", "tf.io.parse_single_example", [text], flat([parsed[k] for k in spec]), features=lines)
    parsed = tf.io.parse_example([one, two, one], spec)
    case("examples_batch", "tf.io.parse_example", [np.array([one, two, one], object)], flat([parsed[k] for k in spec]),
         features=lines)
    spec = {"steps": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
            "ids": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True, default_value=-9)}
    lines = "sequence f32 [2] 0 steps\nsequence i64 [] -9 ids"
    parsed = tf.io.parse_example([one, two], spec)
    case("examples_steps", "tf.io.parse_example", [np.array([one, two], object)], flat([parsed[k] for k in spec]),
         features=lines)
    parsed = tf.io.parse_single_example(two, spec)
    case("example_steps", "tf.io.parse_single_example", [two], flat([parsed[k] for k in spec]), features=lines)


def texts():
    words = np.array([[b"Hello World", b"  a-b_c 12 "], [b"", "Grün/ß.txt".encode()]], object)
    path = b"data/train/cats/img_0012.jpg"
    for i, (text, sep) in enumerate([(path, "/"), (b"a,,b,", ","), (b"  two  words ", None), (b"", None), (b"", ","), (b"a--b", "--")]):
        attrs = {} if sep is None else {"sep": sep}
        case(f"text_split_{i}", "tf.strings.split", [text], tf.strings.split(text, sep), **attrs)
    case("text_split_most", "tf.strings.split", [b"a b  c d"], tf.strings.split(b"a b  c d", maxsplit=2), maxsplit=2)
    case("text_split_most_by", "tf.strings.split", [b"a,b,c,d"], tf.strings.split(b"a,b,c,d", ",", maxsplit=2), sep=",", maxsplit=2)
    rows = np.array([b"a b", b"c d"], object)
    case("text_split_rows", "tf.strings.split", [rows], tf.strings.split(rows).to_tensor())
    for name, function in {"lower": tf.strings.lower, "upper": tf.strings.upper, "strip": tf.strings.strip,
                           "length": tf.strings.length}.items():
        case(f"text_{name}", f"tf.strings.{name}", [words], function(words))
    case("text_length_utf8", "tf.strings.length", [words], tf.strings.length(words, unit="UTF8_CHAR"), unit="UTF8_CHAR")
    for pos, n, unit in ((5, 4, "BYTE"), (-4, 3, "BYTE"), (0, 99, "BYTE"), (2, 3, "UTF8_CHAR")):
        names = np.array(["übermut.jpg".encode(), b"abcdefgh"], object)
        case(f"text_substr_{pos}_{unit}", "tf.strings.substr", [names], tf.strings.substr(names, pos, n, unit), pos=pos, len=n,
             unit=unit)
    case("text_join", "tf.strings.join", [b"dir/", words, b".x"], tf.strings.join([b"dir/", words, b".x"], "|"), separator="|")
    for axis, keep in ((None, False), (0, False), (1, True), (-1, False)):
        attrs = {} if axis is None else {"axis": axis}
        case(f"text_reduce_{axis}_{keep}", "tf.strings.reduce_join", [words],
             tf.strings.reduce_join(words, axis, keepdims=keep, separator=", "), separator=", ", keepdims=keep, **attrs)
    numbers = np.array([b"1.5", b" -2e3", b"inf", b"7", b"+0.1"], object)
    case("text_to_f32", "tf.strings.to_number", [numbers], tf.strings.to_number(numbers))
    whole = np.array([b"12", b"-7", b"2147483647"], object)
    for kind in (tf.int32, tf.int64, tf.float64):
        case(f"text_to_{kind.name}", "tf.strings.to_number", [whole], tf.strings.to_number(whole, kind), out_type=kind.name)
    reals = np.array([1.5, -0.1, 1e10, 3e-7], np.float32)
    case("text_of_f32", "tf.strings.as_string", [reals], tf.strings.as_string(reals))
    case("text_of_f32_2", "tf.strings.as_string", [reals], tf.strings.as_string(reals, precision=2, width=9), precision=2, width=9)
    case("text_of_f32_e", "tf.strings.as_string", [reals], tf.strings.as_string(reals, scientific=True), scientific=True)
    case("text_of_f32_g", "tf.strings.as_string", [reals], tf.strings.as_string(reals, shortest=True), shortest=True)
    ints = np.array([[1, -23], [456, 0]], np.int64)
    case("text_of_i64", "tf.strings.as_string", [ints], tf.strings.as_string(ints, width=5, fill="0"), width=5, fill="0")
    case("text_of_bool", "tf.strings.as_string", [ints > 0], tf.strings.as_string(ints > 0))
    many = np.array([bytes(range(97, 97 + n % 26)) * (n // 26 + 1) for n in range(0, 400, 7)], object)
    case("text_hash", "tf.strings.to_hash_bucket_fast", [many], tf.strings.to_hash_bucket_fast(many, 1000003), num_buckets=1000003)


def patterns():
    names = np.array([b"data/train/cat.12.jpg", b"x_y-z", b"", b"aaa bbb", "naïve café".encode(), b"2024-01-31 23:59"], object)
    rows = [(r"\.jpg$", ".png"), (r"a*", "-"), (r"(\w+)/(\w+)", r"\2:\1"), (r"\d+", "#"), (r"[^a-z/]", ""), (r"(a|ab)(c|bcd)?", r"<\1>"),
            (r"\b\w", "*"), (r"(?i)DATA|CAT", "Q"), (r"a{2,3}", "A"), (r"(x?)(_)(y+?)", r"[\3\2\1]"), (r".", "."), (r"^.*/", ""),
            (r"[[:digit:]]{2}", "D"), (r"(?:aa|a)+?b*", "!"), (r"\s+$|^\s+", ""), (r"", "-"), (r"(\d+)-(\d+)-(\d+)", r"\3.\2.\1\\"),
            (r"b+\z", "end"), (r"[\w.-]+", "w"), (r"(a*)*", "e"), (r"(?P<n>t)r", r"\1\1"), (r"\Qt.1\E", "+"), (r"ï|é", "e")]
    for i, (pattern, rewrite) in enumerate(rows):
        case(f"regex_{i:02}", "tf.strings.regex_replace", [names], tf.strings.regex_replace(names, pattern, rewrite),
             pattern=pattern, rewrite=rewrite)
    case("regex_once", "tf.strings.regex_replace", [names], tf.strings.regex_replace(names, "[a-z]+", "W", replace_global=False),
         pattern="[a-z]+", rewrite="W", replace_global=False)
    for i, pattern in enumerate((r".*\.jpg", r"[a-z_\-]*", r"a+ b+", r"\d{4}-\d\d-\d\d .*", r"(aaa|aaa bbb)")):
        case(f"regex_full_{i}", "tf.strings.regex_full_match", [names], tf.strings.regex_full_match(names, pattern), pattern=pattern)


def numbers():
    raw = np.array([b"\1\2\3\4", b"\5\6\7\x88"], object)
    for kind in (tf.uint8, tf.int32, tf.float32):
        case(f"raw_{kind.name}", "tf.io.decode_raw", [raw], tf.io.decode_raw(raw, kind), out_type=kind.name)
    case("raw_big", "tf.io.decode_raw", [raw], tf.io.decode_raw(raw, tf.int32, little_endian=False), out_type="int32",
         little_endian=False)
    case("raw_fixed", "tf.io.decode_raw", [raw], tf.io.decode_raw(raw, tf.uint8, fixed_length=6), out_type="uint8", fixed_length=6)


def jpegs():
    rgb = picture(40, 56, 3, 4)
    file = tf.io.encode_jpeg(rgb)
    # TensorFlow smooths colours without the pixels beside the window: columns at its edges differ by some levels.
    case("jpeg_crop", "tf.io.decode_and_crop_jpeg", [file], tf.io.decode_and_crop_jpeg(file, [7, 9, 20, 11]), 6,
         crop_window=[7, 9, 20, 11])
    case("jpeg_shape", "tf.io.extract_jpeg_shape", [file], tf.io.extract_jpeg_shape(file))
    case("jpeg_is", "tf.io.is_jpeg", [file], tf.io.is_jpeg(file))
    case("jpeg_is_not", "tf.io.is_jpeg", [b"no"], tf.io.is_jpeg(b"no"))
    case("jpeg_quality", "tf.image.adjust_jpeg_quality", [rgb], tf.image.adjust_jpeg_quality(rgb, 40), 2, jpeg_quality=40)
    unit = (rgb / 255).astype(np.float32)
    case("jpeg_quality_float", "tf.image.adjust_jpeg_quality", [unit], tf.image.adjust_jpeg_quality(unit, 75), 0.009,
         jpeg_quality=75)


def tensors():
    values = {"f32": np.array([[1.5, -2], [0, 3e9]], np.float32), "i64": np.array([1, -2, 2 ** 50]), "u8": np.zeros((2, 0), np.uint8),
              "scalar": np.array(7, np.int32), "bool": np.array([True, False]), "f64": np.array([0.1]),
              "text": np.array([[b"a", b""], [b"long" * 50, b"\0\1"]], object)}
    for name, value in values.items():
        t = tf.constant(value)
        case(f"tensor_to_{name}", "tf.io.serialize_tensor", [value], tf.io.serialize_tensor(t))
        case(f"tensor_of_{name}", "tf.io.parse_tensor", [tf.io.serialize_tensor(t)], t, out_type=t.dtype.name)
    for name, value in {"f32": [1.5] * 4, "i64": [[1, 2], [3, 3]], "bool": [True, False], "string": ["x", "yy"], "i32": [5] * 9}.items():
        proto = tf.make_tensor_proto(value)
        if name == "i32":
            del proto.int_val[1:]
            proto.tensor_content = b""
            proto.int_val[:] = [5]
        text = proto.SerializeToString()
        t = tf.constant(value)
        case(f"tensor_list_{name}", "tf.io.parse_tensor", [text], tf.io.parse_tensor(text, t.dtype), out_type=t.dtype.name)


def csvs():
    rows = np.array([b"1,2.5,word,9", b'-3,,"a, ""b""",8', b" 4 ,1e2,,7"], object)
    out = tf.io.decode_csv(rows, [[0], [0.5], ["none"], tf.constant([], tf.int64)])
    lines = "i32 0\nf32 0.5\ntext x6e6f6e65\ni64 -"
    case("csv_rows", "tf.io.decode_csv", [rows], out, record_defaults=lines)
    case("csv_one", "tf.io.decode_csv", [rows[1]], tf.io.decode_csv(rows[1], [[0], [0.5], ["none"], tf.constant([], tf.int64)]),
         record_defaults=lines)
    out = tf.io.decode_csv(np.array([b"1;NA;x", b"2;5;y"], object), [[7.0], [""]], field_delim=";", na_value="NA", select_cols=[1, 2])
    case("csv_select", "tf.io.decode_csv", [np.array([b"1;NA;x", b"2;5;y"], object)], out, record_defaults="f32 7\ntext x",
         field_delim=";", na_value="NA", select_cols=[1, 2])
    out = tf.io.decode_csv(b'a"b,"c', [["z"], ["z"]], use_quote_delim=False)
    case("csv_plain", "tf.io.decode_csv", [b'a"b,"c'], out, record_defaults="text x\ntext x", use_quote_delim=False)


def resizes():
    methods = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")
    rgb, grey = picture(9, 12, 3, 5), picture(7, 5, 1, 6)
    for method in methods:
        for name, image, size in (("down", rgb, (5, 4)), ("up", grey, (11, 9)), ("mixed", picture(4, 9, 4, 7), (6, 5))):
            for antialias in (False, True):
                case(f"resize_{method}_{name}_{antialias}", "tf.image.resize", [image],
                     tf.image.resize(image, size, method, antialias=antialias), 1e-3, size=size, method=method, antialias=antialias)
    case("resize_f32", "tf.image.resize", [rgb[None].astype(np.float32) / 255], tf.image.resize(rgb[None].astype(np.float32) / 255,
                                                                                             (6, 7)), 1e-5, size=(6, 7))
    case("resize_i32", "tf.image.resize", [rgb.astype(np.int32)], tf.image.resize(rgb.astype(np.int32), (6, 7)), 1e-3, size=(6, 7))
    for size in ((5, 20), (20, 5), (3, 3)):
        case(f"resize_aspect_{size[0]}_{size[1]}", "tf.image.resize", [rgb],
             tf.image.resize(rgb, size, preserve_aspect_ratio=True), 1e-3, size=size, preserve_aspect_ratio=True)
    batch = np.stack([rgb, picture(9, 12, 3, 8)])
    case("resize_batch", "tf.image.resize", [batch], tf.image.resize(batch, (4, 6)), 1e-3, size=(4, 6))


def main(names):
    for make in (pictures, more_pictures, examples, texts, patterns, numbers, resizes, tensors, csvs, jpegs):
        make()
    for name in names or CASES:
        write(name)
    print(f"{len(names or CASES)} cases, {sum(os.path.getsize(os.path.join(HERE, f)) for f in os.listdir(HERE) if f.endswith('.case'))} bytes")


main(sys.argv[1:])
