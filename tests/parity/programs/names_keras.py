"""The names of Keras that programs use: each is there."""
from tensorflow import keras
from parity import check

NAMES = """
keras: Sequential Model Input Variable layers losses metrics optimizers activations initializers regularizers constraints callbacks utils
keras: backend models ops random datasets preprocessing KerasTensor Layer Loss Metric Optimizer Initializer Regularizer InputSpec
keras.models: Sequential Model clone_model model_from_json load_model
keras.layers: Layer Input InputLayer Dense Activation Dropout Flatten Reshape Permute RepeatVector Lambda Masking Embedding Identity
keras.layers: Conv1D Conv2D Conv3D Conv1DTranspose Conv2DTranspose Conv3DTranspose DepthwiseConv1D DepthwiseConv2D SeparableConv1D SeparableConv2D
keras.layers: Convolution2D MaxPooling1D MaxPooling2D MaxPooling3D MaxPool2D AveragePooling1D AveragePooling2D AveragePooling3D AvgPool2D
keras.layers: GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D
keras.layers: GlobalAvgPool2D UpSampling1D UpSampling2D UpSampling3D ZeroPadding1D ZeroPadding2D ZeroPadding3D Cropping1D Cropping2D Cropping3D
keras.layers: BatchNormalization LayerNormalization GroupNormalization UnitNormalization RMSNormalization SpectralNormalization Normalization
keras.layers: SimpleRNN LSTM GRU RNN SimpleRNNCell LSTMCell GRUCell StackedRNNCells Bidirectional TimeDistributed ConvLSTM1D ConvLSTM2D
keras.layers: Add Subtract Multiply Average Maximum Minimum Concatenate Dot add subtract multiply average maximum minimum concatenate dot
keras.layers: Attention AdditiveAttention MultiHeadAttention ReLU LeakyReLU PReLU ELU Softmax GaussianNoise GaussianDropout AlphaDropout
keras.layers: SpatialDropout1D SpatialDropout2D SpatialDropout3D ActivityRegularization EinsumDense Rescaling Resizing CenterCrop RandomFlip
keras.layers: RandomRotation RandomZoom RandomTranslation RandomContrast RandomCrop Discretization CategoryEncoding serialize deserialize
keras.losses: Loss MeanSquaredError MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredLogarithmicError BinaryCrossentropy MSE MAE
keras.losses: CategoricalCrossentropy SparseCategoricalCrossentropy KLDivergence Poisson Huber LogCosh CosineSimilarity Hinge SquaredHinge
keras.losses: CategoricalHinge BinaryFocalCrossentropy CategoricalFocalCrossentropy binary_crossentropy categorical_crossentropy
keras.losses: sparse_categorical_crossentropy get mse mae
keras.metrics: Metric Mean Sum Accuracy BinaryAccuracy CategoricalAccuracy SparseCategoricalAccuracy TopKCategoricalAccuracy Precision Recall AUC
keras.metrics: TruePositives TrueNegatives FalsePositives FalseNegatives MeanSquaredError RootMeanSquaredError MeanAbsoluteError BinaryCrossentropy
keras.metrics: CategoricalCrossentropy SparseCategoricalCrossentropy KLDivergence MeanIoU F1Score R2Score CosineSimilarity MeanMetricWrapper
keras.metrics: SparseTopKCategoricalAccuracy get binary_accuracy categorical_accuracy sparse_categorical_accuracy
keras.optimizers: Optimizer SGD Adam AdamW Adamax Nadam RMSprop Adagrad Adadelta Ftrl Lion Adafactor Lamb schedules get legacy
keras.optimizers.schedules: LearningRateSchedule ExponentialDecay PiecewiseConstantDecay PolynomialDecay InverseTimeDecay CosineDecay CosineDecayRestarts
keras.activations: relu sigmoid tanh softmax softplus softsign elu selu gelu swish silu leaky_relu linear exponential hard_sigmoid mish get
keras.initializers: Zeros Ones Constant RandomNormal RandomUniform TruncatedNormal GlorotUniform GlorotNormal HeNormal HeUniform LecunNormal
keras.initializers: LecunUniform VarianceScaling Orthogonal Identity glorot_uniform he_normal get
keras.regularizers: L1 L2 L1L2 l1 l2 l1_l2 OrthogonalRegularizer Regularizer get
keras.constraints: MaxNorm NonNeg UnitNorm MinMaxNorm max_norm non_neg Constraint
keras.callbacks: Callback EarlyStopping ModelCheckpoint LearningRateScheduler ReduceLROnPlateau History LambdaCallback CSVLogger TerminateOnNaN
keras.callbacks: CallbackList ProgbarLogger BackupAndRestore
keras.utils: to_categorical set_random_seed normalize pad_sequences Sequence PyDataset Progbar get_custom_objects register_keras_serializable
keras.utils: custom_object_scope CustomObjectScope get_registered_name
keras.backend: clear_session floatx set_floatx epsilon image_data_format
keras.random: normal uniform randint truncated_normal dropout shuffle categorical SeedGenerator
keras.datasets: mnist fashion_mnist cifar10 cifar100 imdb reuters california_housing boston_housing
keras.ops: matmul einsum sum mean max min exp log sqrt softmax relu where concatenate stack reshape transpose cast shape zeros ones arange
keras.ops: convert_to_tensor convert_to_numpy stop_gradient cond while_loop fori_loop scan map vectorized_map scatter scatter_update slice
keras.ops: slice_update take take_along_axis one_hot top_k argmax clip norm conv depthwise_conv conv_transpose max_pool average_pool
keras.ops: binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy segment_sum logsumexp erf rsqrt moments normalize unstack
"""
for line in NAMES.strip().splitlines():
    room, names = line.split(": ")
    module = keras
    for part in room.split(".")[1:]:
        module = getattr(module, part, None)
    for name in names.split():
        check(f"{room}.{name}", module is not None and hasattr(module, name))
