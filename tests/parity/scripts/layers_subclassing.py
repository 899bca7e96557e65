"""Making new layers and models via subclassing: the guide's examples in one script."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers


class Linear(keras.layers.Layer):
    def __init__(self, units=32, input_dim=32):
        super().__init__()
        self.w = self.add_weight(shape=(input_dim, units), initializer="random_normal", trainable=True)
        self.b = self.add_weight(shape=(units,), initializer="zeros", trainable=True)

    def call(self, inputs):
        return tf.matmul(inputs, self.w) + self.b


x = tf.ones((2, 2))
linear_layer = Linear(4, 2)
y = linear_layer(x)
print(y.shape, linear_layer.weights == [linear_layer.w, linear_layer.b])


class ComputeSum(keras.layers.Layer):
    def __init__(self, input_dim):
        super().__init__()
        self.total = self.add_weight(initializer="zeros", shape=(input_dim,), trainable=False)

    def call(self, inputs):
        self.total.assign_add(tf.reduce_sum(inputs, axis=0))
        return self.total


my_sum = ComputeSum(2)
y = my_sum(x)
print(np.asarray(y))
y = my_sum(x)
print(np.asarray(y))
print("weights:", len(my_sum.weights), "non-trainable weights:", len(my_sum.non_trainable_weights), "trainable_weights:", my_sum.trainable_weights)


class LazyLinear(keras.layers.Layer):
    def __init__(self, units=32, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer="random_normal", trainable=True)
        self.b = self.add_weight(shape=(self.units,), initializer="random_normal", trainable=True)

    def call(self, inputs):
        return tf.matmul(inputs, self.w) + self.b

    def get_config(self):
        config = super().get_config()
        config.update({"units": self.units})
        return config


layer = LazyLinear(64)
config = layer.get_config()
print(config["units"], config["trainable"])
print(LazyLinear.from_config(config).units)


class MLPBlock(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.linear_1 = LazyLinear(32)
        self.linear_2 = LazyLinear(32)
        self.linear_3 = LazyLinear(1)

    def call(self, inputs):
        x = self.linear_1(inputs)
        x = tf.nn.relu(x)
        x = self.linear_2(x)
        x = tf.nn.relu(x)
        return self.linear_3(x)


mlp = MLPBlock()
y = mlp(tf.ones(shape=(3, 64)))
print("weights:", len(mlp.weights), "trainable weights:", len(mlp.trainable_weights))


class ActivityRegularizationLayer(keras.layers.Layer):
    def __init__(self, rate=1e-2):
        super().__init__()
        self.rate = rate

    def call(self, inputs):
        self.add_loss(self.rate * tf.reduce_mean(inputs))
        return inputs


class OuterLayer(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.activity_reg = ActivityRegularizationLayer(1e-2)

    def call(self, inputs):
        return self.activity_reg(inputs)


outer = OuterLayer()
print(len(outer.losses))
_ = outer(tf.zeros((1, 1)))
print(len(outer.losses))
_ = outer(tf.zeros((1, 1)))
print(len(outer.losses))


class CustomDropout(keras.layers.Layer):
    def __init__(self, rate, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, inputs, training=None):
        if training:
            return keras.random.dropout(inputs, rate=self.rate, seed=self.seed_generator)
        return inputs


d = CustomDropout(0.5)
print(np.array_equal(d(x), x), set(np.unique(d(tf.ones((20, 20)), training=True)).tolist()))


class ResNet(keras.Model):
    def __init__(self, num_classes=7):
        super().__init__()
        self.block_1 = layers.Conv2D(4, 3, padding="same", activation="relu")
        self.block_2 = layers.Conv2D(4, 3, padding="same")
        self.global_pool = layers.GlobalAveragePooling2D()
        self.classifier = layers.Dense(num_classes)

    def call(self, inputs):
        x = self.block_1(inputs)
        x = x + self.block_2(x)
        x = self.global_pool(x)
        return self.classifier(x)


resnet = ResNet()
print(resnet(tf.ones((2, 8, 8, 3))).shape, resnet.count_params())
