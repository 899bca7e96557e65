"""Arguments of Keras' classes: names in their order, with defaults. Each is `name` or `name=default`, divided by bars."""

LAYERS = {
    "Activation": "activation",
    "ActivityRegularization": "l1=0.0|l2=0.0",
    "AdaptiveAveragePooling1D": "output_size|data_format=None",
    "AdaptiveAveragePooling2D": "output_size|data_format=None",
    "AdaptiveAveragePooling3D": "output_size|data_format=None",
    "AdaptiveMaxPooling1D": "output_size|data_format=None",
    "AdaptiveMaxPooling2D": "output_size|data_format=None",
    "AdaptiveMaxPooling3D": "output_size|data_format=None",
    "Add": "",
    "AdditiveAttention": "use_scale=True|dropout=0.0",
    "AlphaDropout": "rate|noise_shape=None|seed=None",
    "Attention": "use_scale=False|score_mode='dot'|dropout=0.0|seed=None",
    "Average": "",
    "AveragePooling1D": "pool_size|strides=None|padding='valid'|data_format=None",
    "AveragePooling2D": "pool_size|strides=None|padding='valid'|data_format=None",
    "AveragePooling3D": "pool_size|strides=None|padding='valid'|data_format=None",
    "BatchNormalization":
        "axis=-1|momentum=0.99|epsilon=0.001|center=True|scale=True|beta_initializer='zeros'|"
        "gamma_initializer='ones'|moving_mean_initializer='zeros'|moving_variance_initializer='ones'|"
        "beta_regularizer=None|gamma_regularizer=None|beta_constraint=None|gamma_constraint=None|"
        "renorm=False|renorm_clipping=None|renorm_momentum=0.99|synchronized=False",
    "Bidirectional": "layer|merge_mode='concat'|weights=None|backward_layer=None",
    "CategoryEncoding": "num_tokens=None|output_mode='multi_hot'|sparse=False",
    "CenterCrop": "height|width|data_format=None",
    "Concatenate": "axis=-1",
    "Conv1D":
        "filters|kernel_size|strides=1|padding='valid'|data_format=None|dilation_rate=1|groups=1|"
        "activation=None|use_bias=True|kernel_initializer='glorot_uniform'|bias_initializer='zeros'|"
        "kernel_regularizer=None|bias_regularizer=None|activity_regularizer=None|kernel_constraint=None|"
        "bias_constraint=None",
    "Conv1DTranspose":
        "filters|kernel_size|strides=1|padding='valid'|output_padding=None|data_format=None|"
        "dilation_rate=1|activation=None|use_bias=True|kernel_initializer='glorot_uniform'|"
        "bias_initializer='zeros'|kernel_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|kernel_constraint=None|bias_constraint=None",
    "Conv2D":
        "filters|kernel_size|strides=(1, 1)|padding='valid'|data_format=None|dilation_rate=(1, 1)|"
        "groups=1|activation=None|use_bias=True|kernel_initializer='glorot_uniform'|"
        "bias_initializer='zeros'|kernel_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|kernel_constraint=None|bias_constraint=None",
    "Conv2DTranspose":
        "filters|kernel_size|strides=(1, 1)|padding='valid'|output_padding=None|data_format=None|"
        "dilation_rate=(1, 1)|activation=None|use_bias=True|kernel_initializer='glorot_uniform'|"
        "bias_initializer='zeros'|kernel_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|kernel_constraint=None|bias_constraint=None",
    "Conv3D":
        "filters|kernel_size|strides=(1, 1, 1)|padding='valid'|data_format=None|dilation_rate=(1, 1, 1)|"
        "groups=1|activation=None|use_bias=True|kernel_initializer='glorot_uniform'|"
        "bias_initializer='zeros'|kernel_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|kernel_constraint=None|bias_constraint=None",
    "Conv3DTranspose":
        "filters|kernel_size|strides=(1, 1, 1)|padding='valid'|data_format=None|output_padding=None|"
        "dilation_rate=(1, 1, 1)|activation=None|use_bias=True|kernel_initializer='glorot_uniform'|"
        "bias_initializer='zeros'|kernel_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|kernel_constraint=None|bias_constraint=None",
    "ConvLSTM1D":
        "filters|kernel_size|strides=1|padding='valid'|data_format=None|dilation_rate=1|"
        "activation='tanh'|recurrent_activation='sigmoid'|use_bias=True|"
        "kernel_initializer='glorot_uniform'|recurrent_initializer='orthogonal'|bias_initializer='zeros'|"
        "unit_forget_bias=True|kernel_regularizer=None|recurrent_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|kernel_constraint=None|recurrent_constraint=None|bias_constraint=None|"
        "dropout=0.0|recurrent_dropout=0.0|seed=None|return_sequences=False|return_state=False|"
        "go_backwards=False|stateful=False",
    "ConvLSTM2D":
        "filters|kernel_size|strides=1|padding='valid'|data_format=None|dilation_rate=1|"
        "activation='tanh'|recurrent_activation='sigmoid'|use_bias=True|"
        "kernel_initializer='glorot_uniform'|recurrent_initializer='orthogonal'|bias_initializer='zeros'|"
        "unit_forget_bias=True|kernel_regularizer=None|recurrent_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|kernel_constraint=None|recurrent_constraint=None|bias_constraint=None|"
        "dropout=0.0|recurrent_dropout=0.0|seed=None|return_sequences=False|return_state=False|"
        "go_backwards=False|stateful=False",
    "ConvLSTM3D":
        "filters|kernel_size|strides=1|padding='valid'|data_format=None|dilation_rate=1|"
        "activation='tanh'|recurrent_activation='sigmoid'|use_bias=True|"
        "kernel_initializer='glorot_uniform'|recurrent_initializer='orthogonal'|bias_initializer='zeros'|"
        "unit_forget_bias=True|kernel_regularizer=None|recurrent_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|kernel_constraint=None|recurrent_constraint=None|bias_constraint=None|"
        "dropout=0.0|recurrent_dropout=0.0|seed=None|return_sequences=False|return_state=False|"
        "go_backwards=False|stateful=False",
    "Cropping1D": "cropping=(1, 1)",
    "Cropping2D": "cropping=((0, 0), (0, 0))|data_format=None",
    "Cropping3D": "cropping=((1, 1), (1, 1), (1, 1))|data_format=None",
    "Dense":
        "units|activation=None|use_bias=True|kernel_initializer='glorot_uniform'|"
        "bias_initializer='zeros'|kernel_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|kernel_constraint=None|bias_constraint=None",
    "DepthwiseConv1D":
        "kernel_size|strides=1|padding='valid'|depth_multiplier=1|data_format=None|dilation_rate=1|"
        "activation=None|use_bias=True|depthwise_initializer='glorot_uniform'|bias_initializer='zeros'|"
        "depthwise_regularizer=None|bias_regularizer=None|activity_regularizer=None|"
        "depthwise_constraint=None|bias_constraint=None",
    "DepthwiseConv2D":
        "kernel_size|strides=(1, 1)|padding='valid'|depth_multiplier=1|data_format=None|"
        "dilation_rate=(1, 1)|activation=None|use_bias=True|depthwise_initializer='glorot_uniform'|"
        "bias_initializer='zeros'|depthwise_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|depthwise_constraint=None|bias_constraint=None",
    "Discretization": "bin_boundaries=None|num_bins=None|epsilon=0.01|output_mode='int'|sparse=False",
    "Dot": "axes|normalize=False",
    "Dropout": "rate|noise_shape=None|seed=None",
    "ELU": "alpha=1.0",
    "EinsumDense":
        "equation|output_shape|activation=None|bias_axes=None|kernel_initializer='glorot_uniform'|"
        "bias_initializer='zeros'|kernel_regularizer=None|bias_regularizer=None|kernel_constraint=None|"
        "bias_constraint=None|gptq_unpacked_column_size=None",
    "Embedding":
        "input_dim|output_dim|embeddings_initializer='uniform'|embeddings_regularizer=None|"
        "embeddings_constraint=None|mask_zero=False|weights=None",
    "Flatten": "data_format=None",
    "GRU":
        "units|activation='tanh'|recurrent_activation='sigmoid'|use_bias=True|"
        "kernel_initializer='glorot_uniform'|recurrent_initializer='orthogonal'|bias_initializer='zeros'|"
        "kernel_regularizer=None|recurrent_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|kernel_constraint=None|recurrent_constraint=None|bias_constraint=None|"
        "dropout=0.0|recurrent_dropout=0.0|seed=None|return_sequences=False|return_state=False|"
        "go_backwards=False|stateful=False|unroll=False|reset_after=True|use_cudnn='auto'",
    "GRUCell":
        "units|activation='tanh'|recurrent_activation='sigmoid'|use_bias=True|"
        "kernel_initializer='glorot_uniform'|recurrent_initializer='orthogonal'|bias_initializer='zeros'|"
        "kernel_regularizer=None|recurrent_regularizer=None|bias_regularizer=None|kernel_constraint=None|"
        "recurrent_constraint=None|bias_constraint=None|dropout=0.0|recurrent_dropout=0.0|"
        "reset_after=True|seed=None",
    "GaussianDropout": "rate|seed=None",
    "GaussianNoise": "stddev|seed=None",
    "GlobalAveragePooling1D": "data_format=None|keepdims=False",
    "GlobalAveragePooling2D": "data_format=None|keepdims=False",
    "GlobalAveragePooling3D": "data_format=None|keepdims=False",
    "GlobalMaxPooling1D": "data_format=None|keepdims=False",
    "GlobalMaxPooling2D": "data_format=None|keepdims=False",
    "GlobalMaxPooling3D": "data_format=None|keepdims=False",
    "GroupNormalization":
        "groups=32|axis=-1|epsilon=0.001|center=True|scale=True|beta_initializer='zeros'|"
        "gamma_initializer='ones'|beta_regularizer=None|gamma_regularizer=None|beta_constraint=None|"
        "gamma_constraint=None",
    "GroupQueryAttention":
        "head_dim|num_query_heads|num_key_value_heads|dropout=0.0|use_bias=True|sliding_window=None|"
        "kernel_initializer='glorot_uniform'|bias_initializer='zeros'|kernel_regularizer=None|"
        "bias_regularizer=None|activity_regularizer=None|kernel_constraint=None|bias_constraint=None|"
        "use_gate=False|seed=None",
    "Identity": "",
    "InputLayer":
        "shape=None|batch_size=None|sparse=None|ragged=None|batch_shape=None|input_tensor=None|"
        "optional=False",
    "LSTM":
        "units|activation='tanh'|recurrent_activation='sigmoid'|use_bias=True|"
        "kernel_initializer='glorot_uniform'|recurrent_initializer='orthogonal'|bias_initializer='zeros'|"
        "unit_forget_bias=True|kernel_regularizer=None|recurrent_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|kernel_constraint=None|recurrent_constraint=None|bias_constraint=None|"
        "dropout=0.0|recurrent_dropout=0.0|seed=None|return_sequences=False|return_state=False|"
        "go_backwards=False|stateful=False|unroll=False|use_cudnn='auto'",
    "LSTMCell":
        "units|activation='tanh'|recurrent_activation='sigmoid'|use_bias=True|"
        "kernel_initializer='glorot_uniform'|recurrent_initializer='orthogonal'|bias_initializer='zeros'|"
        "unit_forget_bias=True|kernel_regularizer=None|recurrent_regularizer=None|bias_regularizer=None|"
        "kernel_constraint=None|recurrent_constraint=None|bias_constraint=None|dropout=0.0|"
        "recurrent_dropout=0.0|seed=None",
    "LayerNormalization":
        "axis=-1|epsilon=0.001|center=True|scale=True|beta_initializer='zeros'|gamma_initializer='ones'|"
        "beta_regularizer=None|gamma_regularizer=None|beta_constraint=None|gamma_constraint=None",
    "LeakyReLU": "negative_slope=0.3",
    "Masking": "mask_value=0.0",
    "MaxPooling1D": "pool_size=2|strides=None|padding='valid'|data_format=None",
    "MaxPooling2D": "pool_size=(2, 2)|strides=None|padding='valid'|data_format=None",
    "MaxPooling3D": "pool_size=(2, 2, 2)|strides=None|padding='valid'|data_format=None",
    "Maximum": "",
    "Minimum": "",
    "MultiHeadAttention":
        "num_heads|key_dim|value_dim=None|dropout=0.0|use_bias=True|output_shape=None|"
        "attention_axes=None|sliding_window=None|kernel_initializer='glorot_uniform'|"
        "bias_initializer='zeros'|kernel_regularizer=None|bias_regularizer=None|"
        "activity_regularizer=None|kernel_constraint=None|bias_constraint=None|use_gate=False|seed=None",
    "Multiply": "",
    "Normalization": "axis=-1|mean=None|variance=None|invert=False",
    "PReLU": "alpha_initializer='Zeros'|alpha_regularizer=None|alpha_constraint=None|shared_axes=None",
    "Permute": "dims",
    "RMSNormalization": "axis=-1|epsilon=1e-06",
    "RNN":
        "cell|return_sequences=False|return_state=False|go_backwards=False|stateful=False|unroll=False|"
        "zero_output_for_mask=False",
    "RandomBrightness": "factor|value_range=(0, 255)|seed=None",
    "RandomContrast": "factor|value_range=(0, 255)|seed=None",
    "RandomCrop": "height|width|seed=None|data_format=None",
    "RandomFlip": "mode='horizontal_and_vertical'|seed=None|data_format=None",
    "RandomRotation": "factor|fill_mode='reflect'|interpolation='bilinear'|seed=None|fill_value=0.0|data_format=None",
    "RandomTranslation":
        "height_factor|width_factor|fill_mode='reflect'|interpolation='bilinear'|seed=None|"
        "fill_value=0.0|data_format=None",
    "RandomZoom":
        "height_factor|width_factor=None|fill_mode='reflect'|interpolation='bilinear'|seed=None|"
        "fill_value=0.0|data_format=None",
    "ReLU": "max_value=None|negative_slope=0.0|threshold=0.0",
    "RepeatVector": "n",
    "Rescaling": "scale|offset=0.0",
    "Reshape": "target_shape",
    "Resizing":
        "height|width|interpolation='bilinear'|crop_to_aspect_ratio=False|pad_to_aspect_ratio=False|"
        "fill_mode='constant'|fill_value=0.0|antialias=False|data_format=None",
    "SeparableConv1D":
        "filters|kernel_size|strides=1|padding='valid'|data_format=None|dilation_rate=1|"
        "depth_multiplier=1|activation=None|use_bias=True|depthwise_initializer='glorot_uniform'|"
        "pointwise_initializer='glorot_uniform'|bias_initializer='zeros'|depthwise_regularizer=None|"
        "pointwise_regularizer=None|bias_regularizer=None|activity_regularizer=None|"
        "depthwise_constraint=None|pointwise_constraint=None|bias_constraint=None",
    "SeparableConv2D":
        "filters|kernel_size|strides=(1, 1)|padding='valid'|data_format=None|dilation_rate=(1, 1)|"
        "depth_multiplier=1|activation=None|use_bias=True|depthwise_initializer='glorot_uniform'|"
        "pointwise_initializer='glorot_uniform'|bias_initializer='zeros'|depthwise_regularizer=None|"
        "pointwise_regularizer=None|bias_regularizer=None|activity_regularizer=None|"
        "depthwise_constraint=None|pointwise_constraint=None|bias_constraint=None",
    "SimpleRNN":
        "units|activation='tanh'|use_bias=True|kernel_initializer='glorot_uniform'|"
        "recurrent_initializer='orthogonal'|bias_initializer='zeros'|kernel_regularizer=None|"
        "recurrent_regularizer=None|bias_regularizer=None|activity_regularizer=None|"
        "kernel_constraint=None|recurrent_constraint=None|bias_constraint=None|dropout=0.0|"
        "recurrent_dropout=0.0|return_sequences=False|return_state=False|go_backwards=False|"
        "stateful=False|unroll=False|seed=None",
    "SimpleRNNCell":
        "units|activation='tanh'|use_bias=True|kernel_initializer='glorot_uniform'|"
        "recurrent_initializer='orthogonal'|bias_initializer='zeros'|kernel_regularizer=None|"
        "recurrent_regularizer=None|bias_regularizer=None|kernel_constraint=None|"
        "recurrent_constraint=None|bias_constraint=None|dropout=0.0|recurrent_dropout=0.0|seed=None",
    "Softmax": "axis=-1",
    "SpatialDropout1D": "rate|seed=None",
    "SpatialDropout2D": "rate|data_format=None|seed=None",
    "SpatialDropout3D": "rate|data_format=None|seed=None",
    "SpectralNormalization": "layer|power_iterations=1",
    "StackedRNNCells": "cells",
    "Subtract": "",
    "TimeDistributed": "layer",
    "UnitNormalization": "axis=-1",
    "UpSampling1D": "size=2",
    "UpSampling2D": "size=(2, 2)|data_format=None|interpolation='nearest'",
    "UpSampling3D": "size=(2, 2, 2)|data_format=None",
    "ZeroPadding1D": "padding=1|data_format=None",
    "ZeroPadding2D": "padding=(1, 1)|data_format=None",
    "ZeroPadding3D": "padding=((1, 1), (1, 1), (1, 1))|data_format=None",
}

LAYER_ALIASES = {
    "AvgPool1D": "AveragePooling1D",
    "AvgPool2D": "AveragePooling2D",
    "AvgPool3D": "AveragePooling3D",
    "Convolution1D": "Conv1D",
    "Convolution1DTranspose": "Conv1DTranspose",
    "Convolution2D": "Conv2D",
    "Convolution2DTranspose": "Conv2DTranspose",
    "Convolution3D": "Conv3D",
    "Convolution3DTranspose": "Conv3DTranspose",
    "GlobalAvgPool1D": "GlobalAveragePooling1D",
    "GlobalAvgPool2D": "GlobalAveragePooling2D",
    "GlobalAvgPool3D": "GlobalAveragePooling3D",
    "GlobalMaxPool1D": "GlobalMaxPooling1D",
    "GlobalMaxPool2D": "GlobalMaxPooling2D",
    "GlobalMaxPool3D": "GlobalMaxPooling3D",
    "MaxPool1D": "MaxPooling1D",
    "MaxPool2D": "MaxPooling2D",
    "MaxPool3D": "MaxPooling3D",
    "SeparableConvolution1D": "SeparableConv1D",
    "SeparableConvolution2D": "SeparableConv2D",
}

LOSSES = {
    "BinaryCrossentropy": "from_logits=False|label_smoothing=0.0|axis=-1|reduction='sum_over_batch_size'",
    "BinaryFocalCrossentropy":
        "apply_class_balancing=False|alpha=0.25|gamma=2.0|from_logits=False|label_smoothing=0.0|axis=-1|"
        "reduction='sum_over_batch_size'",
    "CTC": "reduction='sum_over_batch_size'",
    "CategoricalCrossentropy": "from_logits=False|label_smoothing=0.0|axis=-1|reduction='sum_over_batch_size'",
    "CategoricalFocalCrossentropy":
        "alpha=0.25|gamma=2.0|from_logits=False|label_smoothing=0.0|axis=-1|"
        "reduction='sum_over_batch_size'",
    "CategoricalGeneralizedCrossEntropy": "q=0.5|reduction='sum_over_batch_size'",
    "CategoricalHinge": "reduction='sum_over_batch_size'",
    "Circle": "gamma=80.0|margin=0.4|remove_diagonal=True|reduction='sum_over_batch_size'",
    "CosineSimilarity": "axis=-1|reduction='sum_over_batch_size'",
    "Dice": "reduction='sum_over_batch_size'|axis=None",
    "Hinge": "reduction='sum_over_batch_size'",
    "Huber": "delta=1.0|reduction='sum_over_batch_size'",
    "KLDivergence": "reduction='sum_over_batch_size'",
    "LogCosh": "reduction='sum_over_batch_size'",
    "Loss": "reduction='sum_over_batch_size'",
    "MeanAbsoluteError": "reduction='sum_over_batch_size'",
    "MeanAbsolutePercentageError": "reduction='sum_over_batch_size'",
    "MeanSquaredError": "reduction='sum_over_batch_size'",
    "MeanSquaredLogarithmicError": "reduction='sum_over_batch_size'",
    "Poisson": "reduction='sum_over_batch_size'",
    "SparseCategoricalCrossentropy": "from_logits=False|ignore_class=None|reduction='sum_over_batch_size'|axis=-1",
    "SquaredHinge": "reduction='sum_over_batch_size'",
    "Tversky": "alpha=0.5|beta=0.5|reduction='sum_over_batch_size'|axis=None",
}

METRICS = {
    "AUC":
        "num_thresholds=200|curve='ROC'|summation_method='interpolation'|thresholds=None|"
        "multi_label=False|num_labels=None|label_weights=None|from_logits=False",
    "Accuracy": "",
    "BinaryAccuracy": "threshold=0.5",
    "BinaryCrossentropy": "from_logits=False|label_smoothing=0",
    "BinaryIoU": "target_class_ids=(0, 1)|threshold=0.5",
    "CategoricalAccuracy": "",
    "CategoricalCrossentropy": "from_logits=False|label_smoothing=0|axis=-1",
    "CategoricalHinge": "",
    "ConcordanceCorrelation": "axis=-1",
    "CosineSimilarity": "axis=-1",
    "F1Score": "average=None|threshold=None",
    "FBetaScore": "average=None|beta=1.0|threshold=None",
    "FalseNegatives": "thresholds=None",
    "FalsePositives": "thresholds=None",
    "Hinge": "",
    "IoU": "num_classes|target_class_ids|ignore_class=None|sparse_y_true=True|sparse_y_pred=True|axis=-1",
    "KLDivergence": "",
    "LogCoshError": "",
    "Mean": "",
    "MeanAbsoluteError": "",
    "MeanAbsolutePercentageError": "",
    "MeanIoU": "num_classes|ignore_class=None|sparse_y_true=True|sparse_y_pred=True|axis=-1",
    "MeanMetricWrapper": "fn",
    "MeanSquaredError": "",
    "MeanSquaredLogarithmicError": "",
    "Metric": "",
    "OneHotIoU": "num_classes|target_class_ids|ignore_class=None|sparse_y_pred=False|axis=-1",
    "OneHotMeanIoU": "num_classes|ignore_class=None|sparse_y_pred=False|axis=-1",
    "PearsonCorrelation": "axis=-1",
    "Poisson": "",
    "Precision": "thresholds=None|top_k=None|class_id=None",
    "PrecisionAtRecall": "recall|num_thresholds=200|class_id=None",
    "R2Score": "class_aggregation='uniform_average'|num_regressors=0",
    "Recall": "thresholds=None|top_k=None|class_id=None",
    "RecallAtPrecision": "precision|num_thresholds=200|class_id=None",
    "RootMeanSquaredError": "",
    "SensitivityAtSpecificity": "specificity|num_thresholds=200|class_id=None",
    "SparseCategoricalAccuracy": "",
    "SparseCategoricalCrossentropy": "from_logits=False|ignore_class=None|axis=-1",
    "SparseTopKCategoricalAccuracy": "k=5|from_sorted_ids=False",
    "SpecificityAtSensitivity": "sensitivity|num_thresholds=200|class_id=None",
    "SquaredHinge": "",
    "Sum": "",
    "TopKCategoricalAccuracy": "k=5",
    "TrueNegatives": "thresholds=None",
    "TruePositives": "thresholds=None",
}

OPTIMIZERS = {
    "Adadelta":
        "learning_rate=0.001|rho=0.95|epsilon=1e-07|weight_decay=None|clipnorm=None|clipvalue=None|"
        "global_clipnorm=None|use_ema=False|ema_momentum=0.99|ema_overwrite_frequency=None|"
        "loss_scale_factor=None|gradient_accumulation_steps=None",
    "Adafactor":
        "learning_rate=0.001|beta_2_decay=-0.8|epsilon_1=1e-30|epsilon_2=0.001|clip_threshold=1.0|"
        "relative_step=True|weight_decay=None|clipnorm=None|clipvalue=None|global_clipnorm=None|"
        "use_ema=False|ema_momentum=0.99|ema_overwrite_frequency=None|loss_scale_factor=None|"
        "gradient_accumulation_steps=None",
    "Adagrad":
        "learning_rate=0.001|initial_accumulator_value=0.1|epsilon=1e-07|weight_decay=None|clipnorm=None|"
        "clipvalue=None|global_clipnorm=None|use_ema=False|ema_momentum=0.99|"
        "ema_overwrite_frequency=None|loss_scale_factor=None|gradient_accumulation_steps=None",
    "Adam":
        "learning_rate=0.001|beta_1=0.9|beta_2=0.999|epsilon=1e-07|amsgrad=False|weight_decay=None|"
        "clipnorm=None|clipvalue=None|global_clipnorm=None|use_ema=False|ema_momentum=0.99|"
        "ema_overwrite_frequency=None|loss_scale_factor=None|gradient_accumulation_steps=None",
    "AdamW":
        "learning_rate=0.001|weight_decay=0.004|beta_1=0.9|beta_2=0.999|epsilon=1e-07|amsgrad=False|"
        "clipnorm=None|clipvalue=None|global_clipnorm=None|use_ema=False|ema_momentum=0.99|"
        "ema_overwrite_frequency=None|loss_scale_factor=None|gradient_accumulation_steps=None",
    "Adamax":
        "learning_rate=0.001|beta_1=0.9|beta_2=0.999|epsilon=1e-07|weight_decay=None|clipnorm=None|"
        "clipvalue=None|global_clipnorm=None|use_ema=False|ema_momentum=0.99|"
        "ema_overwrite_frequency=None|loss_scale_factor=None|gradient_accumulation_steps=None",
    "Ftrl":
        "learning_rate=0.001|learning_rate_power=-0.5|initial_accumulator_value=0.1|"
        "l1_regularization_strength=0.0|l2_regularization_strength=0.0|"
        "l2_shrinkage_regularization_strength=0.0|beta=0.0|weight_decay=None|clipnorm=None|"
        "clipvalue=None|global_clipnorm=None|use_ema=False|ema_momentum=0.99|"
        "ema_overwrite_frequency=None|loss_scale_factor=None|gradient_accumulation_steps=None",
    "Lamb":
        "learning_rate=0.001|beta_1=0.9|beta_2=0.999|epsilon=1e-07|weight_decay=None|clipnorm=None|"
        "clipvalue=None|global_clipnorm=None|use_ema=False|ema_momentum=0.99|"
        "ema_overwrite_frequency=None|loss_scale_factor=None|gradient_accumulation_steps=None",
    "Lion":
        "learning_rate=0.001|beta_1=0.9|beta_2=0.99|weight_decay=None|clipnorm=None|clipvalue=None|"
        "global_clipnorm=None|use_ema=False|ema_momentum=0.99|ema_overwrite_frequency=None|"
        "loss_scale_factor=None|gradient_accumulation_steps=None",
    "LossScaleOptimizer": "inner_optimizer|initial_scale=32768.0|dynamic_growth_steps=2000",
    "MultiOptimizer": "optimizer_map|loss_scale_factor=None",
    "Muon":
        "learning_rate=0.001|adam_beta_1=0.9|adam_beta_2=0.999|adam_weight_decay=0.004|epsilon=1e-07|"
        "weight_decay=0.004|clipnorm=None|clipvalue=None|global_clipnorm=None|use_ema=False|"
        "ema_momentum=0.99|ema_overwrite_frequency=None|loss_scale_factor=None|"
        "gradient_accumulation_steps=None|exclude_layers=None|exclude_embeddings=True|muon_a=3.4445|"
        "muon_b=-4.775|muon_c=2.0315|adam_lr_ratio=1|momentum=0.95|ns_steps=5|nesterov=True|rms_rate=0.2",
    "Nadam":
        "learning_rate=0.001|beta_1=0.9|beta_2=0.999|epsilon=1e-07|weight_decay=None|clipnorm=None|"
        "clipvalue=None|global_clipnorm=None|use_ema=False|ema_momentum=0.99|"
        "ema_overwrite_frequency=None|loss_scale_factor=None|gradient_accumulation_steps=None",
    "Optimizer": "*args",
    "RMSprop":
        "learning_rate=0.001|rho=0.9|momentum=0.0|epsilon=1e-07|centered=False|weight_decay=None|"
        "clipnorm=None|clipvalue=None|global_clipnorm=None|use_ema=False|ema_momentum=0.99|"
        "ema_overwrite_frequency=None|loss_scale_factor=None|gradient_accumulation_steps=None",
    "SGD":
        "learning_rate=0.01|momentum=0.0|nesterov=False|weight_decay=None|clipnorm=None|clipvalue=None|"
        "global_clipnorm=None|use_ema=False|ema_momentum=0.99|ema_overwrite_frequency=None|"
        "loss_scale_factor=None|gradient_accumulation_steps=None",
    "ScheduleFreeAdamW":
        "learning_rate=0.0025|beta_1=0.9|beta_2=0.999|epsilon=1e-08|warmup_steps=0|weight_decay=None|"
        "clipnorm=None|clipvalue=None|global_clipnorm=None|use_ema=False|ema_momentum=0.99|"
        "ema_overwrite_frequency=None|loss_scale_factor=None|gradient_accumulation_steps=None",
}

SCHEDULES = {
    "CosineDecay": "initial_learning_rate|decay_steps|alpha=0.0|warmup_target=None|warmup_steps=0",
    "CosineDecayRestarts": "initial_learning_rate|first_decay_steps|t_mul=2.0|m_mul=1.0|alpha=0.0",
    "ExponentialDecay": "initial_learning_rate|decay_steps|decay_rate|staircase=False",
    "InverseTimeDecay": "initial_learning_rate|decay_steps|decay_rate|staircase=False",
    "LearningRateSchedule": "*args",
    "PiecewiseConstantDecay": "boundaries|values",
    "PolynomialDecay": "initial_learning_rate|decay_steps|end_learning_rate=0.0001|power=1.0|cycle=False",
}

INITIALIZERS = {
    "Constant": "value=0.0",
    "GlorotNormal": "seed=None|input_axes=None|output_axes=None",
    "GlorotUniform": "seed=None|input_axes=None|output_axes=None",
    "HeNormal": "seed=None|input_axes=None|output_axes=None",
    "HeUniform": "seed=None|input_axes=None|output_axes=None",
    "Identity": "gain=1.0",
    "IdentityInitializer": "gain=1.0",
    "Initializer": "*args",
    "LecunNormal": "seed=None|input_axes=None|output_axes=None",
    "LecunUniform": "seed=None|input_axes=None|output_axes=None",
    "Ones": "*args",
    "Orthogonal": "gain=1.0|seed=None",
    "OrthogonalInitializer": "gain=1.0|seed=None",
    "RandomNormal": "mean=0.0|stddev=0.05|seed=None",
    "RandomUniform": "minval=-0.05|maxval=0.05|seed=None",
    "STFT": "side='real'|window='hann'|scaling='density'|periodic=False",
    "STFTInitializer": "side='real'|window='hann'|scaling='density'|periodic=False",
    "TruncatedNormal": "mean=0.0|stddev=0.05|seed=None",
    "VarianceScaling":
        "scale=1.0|mode='fan_in'|distribution='truncated_normal'|seed=None|input_axes=None|"
        "output_axes=None",
    "Zeros": "*args",
    "constant": "value=0.0",
    "glorot_normal": "seed=None|input_axes=None|output_axes=None",
    "glorot_uniform": "seed=None|input_axes=None|output_axes=None",
    "he_normal": "seed=None|input_axes=None|output_axes=None",
    "he_uniform": "seed=None|input_axes=None|output_axes=None",
    "identity": "gain=1.0",
    "lecun_normal": "seed=None|input_axes=None|output_axes=None",
    "lecun_uniform": "seed=None|input_axes=None|output_axes=None",
    "ones": "*args",
    "orthogonal": "gain=1.0|seed=None",
    "random_normal": "mean=0.0|stddev=0.05|seed=None",
    "random_uniform": "minval=-0.05|maxval=0.05|seed=None",
    "stft": "side='real'|window='hann'|scaling='density'|periodic=False",
    "truncated_normal": "mean=0.0|stddev=0.05|seed=None",
    "variance_scaling":
        "scale=1.0|mode='fan_in'|distribution='truncated_normal'|seed=None|input_axes=None|"
        "output_axes=None",
    "zeros": "*args",
}

REGULARIZERS = {
    "L1": "l1=0.01",
    "L1L2": "l1=0.0|l2=0.0",
    "L2": "l2=0.01",
    "OrthogonalRegularizer": "factor=0.01|mode='rows'",
    "Regularizer": "*args",
    "l1": "l1=0.01",
    "l1_l2": "l1=0.0|l2=0.0",
    "l2": "l2=0.01",
    "orthogonal_regularizer": "factor=0.01|mode='rows'",
}

CONSTRAINTS = {
    "Constraint": "*args",
    "MaxNorm": "max_value=2|axis=0",
    "MinMaxNorm": "min_value=0.0|max_value=1.0|rate=1.0|axis=0",
    "NonNeg": "*args",
    "UnitNorm": "axis=0",
    "max_norm": "max_value=2|axis=0",
    "min_max_norm": "min_value=0.0|max_value=1.0|rate=1.0|axis=0",
    "non_neg": "*args",
    "unit_norm": "axis=0",
}
