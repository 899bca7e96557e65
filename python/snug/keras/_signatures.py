"""Arguments of Keras' losses, metrics and optimizers, as Python writes them; those of layers stand in the engine's table (_C.layer_row)."""

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
    "BinaryCrossentropy": "from_logits=False, label_smoothing=0.0, axis=-1, reduction='sum_over_batch_size'",
    "BinaryFocalCrossentropy":
        "apply_class_balancing=False, alpha=0.25, gamma=2.0, from_logits=False, label_smoothing=0.0, axis=-1, "
        "reduction='sum_over_batch_size'",
    "CTC": "reduction='sum_over_batch_size'",
    "CategoricalCrossentropy": "from_logits=False, label_smoothing=0.0, axis=-1, reduction='sum_over_batch_size'",
    "CategoricalFocalCrossentropy":
        "alpha=0.25, gamma=2.0, from_logits=False, label_smoothing=0.0, axis=-1, reduction='sum_over_batch_size'",
    "CategoricalGeneralizedCrossEntropy": "q=0.5, reduction='sum_over_batch_size'",
    "CategoricalHinge": "reduction='sum_over_batch_size'",
    "Circle": "gamma=80.0, margin=0.4, remove_diagonal=True, reduction='sum_over_batch_size'",
    "CosineSimilarity": "axis=-1, reduction='sum_over_batch_size'",
    "Dice": "reduction='sum_over_batch_size', axis=None",
    "Hinge": "reduction='sum_over_batch_size'",
    "Huber": "delta=1.0, reduction='sum_over_batch_size'",
    "KLDivergence": "reduction='sum_over_batch_size'",
    "LogCosh": "reduction='sum_over_batch_size'",
    "Loss": "reduction='sum_over_batch_size'",
    "MeanAbsoluteError": "reduction='sum_over_batch_size'",
    "MeanAbsolutePercentageError": "reduction='sum_over_batch_size'",
    "MeanSquaredError": "reduction='sum_over_batch_size'",
    "MeanSquaredLogarithmicError": "reduction='sum_over_batch_size'",
    "Poisson": "reduction='sum_over_batch_size'",
    "SparseCategoricalCrossentropy": "from_logits=False, ignore_class=None, reduction='sum_over_batch_size', axis=-1",
    "SquaredHinge": "reduction='sum_over_batch_size'",
    "Tversky": "alpha=0.5, beta=0.5, reduction='sum_over_batch_size', axis=None",
}

METRICS = {
    "AUC":
        "num_thresholds=200, curve='ROC', summation_method='interpolation', thresholds=None, multi_label=False, num_labels=None, "
        "label_weights=None, from_logits=False",
    "Accuracy": "",
    "BinaryAccuracy": "threshold=0.5",
    "BinaryCrossentropy": "from_logits=False, label_smoothing=0",
    "BinaryIoU": "target_class_ids=(0, 1), threshold=0.5",
    "CategoricalAccuracy": "",
    "CategoricalCrossentropy": "from_logits=False, label_smoothing=0, axis=-1",
    "CategoricalHinge": "",
    "ConcordanceCorrelation": "axis=-1",
    "CosineSimilarity": "axis=-1",
    "F1Score": "average=None, threshold=None",
    "FBetaScore": "average=None, beta=1.0, threshold=None",
    "FalseNegatives": "thresholds=None",
    "FalsePositives": "thresholds=None",
    "Hinge": "",
    "IoU": "num_classes, target_class_ids, ignore_class=None, sparse_y_true=True, sparse_y_pred=True, axis=-1",
    "KLDivergence": "",
    "LogCoshError": "",
    "Mean": "",
    "MeanAbsoluteError": "",
    "MeanAbsolutePercentageError": "",
    "MeanIoU": "num_classes, ignore_class=None, sparse_y_true=True, sparse_y_pred=True, axis=-1",
    "MeanMetricWrapper": "fn",
    "MeanSquaredError": "",
    "MeanSquaredLogarithmicError": "",
    "Metric": "",
    "OneHotIoU": "num_classes, target_class_ids, ignore_class=None, sparse_y_pred=False, axis=-1",
    "OneHotMeanIoU": "num_classes, ignore_class=None, sparse_y_pred=False, axis=-1",
    "PearsonCorrelation": "axis=-1",
    "Poisson": "",
    "Precision": "thresholds=None, top_k=None, class_id=None",
    "PrecisionAtRecall": "recall, num_thresholds=200, class_id=None",
    "R2Score": "class_aggregation='uniform_average', num_regressors=0",
    "Recall": "thresholds=None, top_k=None, class_id=None",
    "RecallAtPrecision": "precision, num_thresholds=200, class_id=None",
    "RootMeanSquaredError": "",
    "SensitivityAtSpecificity": "specificity, num_thresholds=200, class_id=None",
    "SparseCategoricalAccuracy": "",
    "SparseCategoricalCrossentropy": "from_logits=False, ignore_class=None, axis=-1",
    "SparseTopKCategoricalAccuracy": "k=5, from_sorted_ids=False",
    "SpecificityAtSensitivity": "sensitivity, num_thresholds=200, class_id=None",
    "SquaredHinge": "",
    "Sum": "",
    "TopKCategoricalAccuracy": "k=5",
    "TrueNegatives": "thresholds=None",
    "TruePositives": "thresholds=None",
}

# Variables that the engine keeps of each weight for an optimizer of its own, whatever the settings; Adafactor's are smaller than the weight.
SLOTS = {"Adadelta": 2, "Adafactor": 0, "Adagrad": 1, "Adam": 2, "AdamW": 2, "Adamax": 2, "Ftrl": 2, "Lamb": 2, "Lion": 1, "Nadam": 2,
         "RMSprop": 1, "SGD": 0}

OPTIMIZERS = {
    "Adadelta":
        "learning_rate=0.001, rho=0.95, epsilon=1e-07, weight_decay=None, clipnorm=None, clipvalue=None, global_clipnorm=None, "
        "use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None, gradient_accumulation_steps=None",
    "Adafactor":
        "learning_rate=0.001, beta_2_decay=-0.8, epsilon_1=1e-30, epsilon_2=0.001, clip_threshold=1.0, relative_step=True, "
        "weight_decay=None, clipnorm=None, clipvalue=None, global_clipnorm=None, use_ema=False, ema_momentum=0.99, "
        "ema_overwrite_frequency=None, loss_scale_factor=None, gradient_accumulation_steps=None",
    "Adagrad":
        "learning_rate=0.001, initial_accumulator_value=0.1, epsilon=1e-07, weight_decay=None, clipnorm=None, clipvalue=None, "
        "global_clipnorm=None, use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None, "
        "gradient_accumulation_steps=None",
    "Adam":
        "learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-07, amsgrad=False, weight_decay=None, clipnorm=None, clipvalue=None, "
        "global_clipnorm=None, use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None, "
        "gradient_accumulation_steps=None",
    "AdamW":
        "learning_rate=0.001, weight_decay=0.004, beta_1=0.9, beta_2=0.999, epsilon=1e-07, amsgrad=False, clipnorm=None, clipvalue=None, "
        "global_clipnorm=None, use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None, "
        "gradient_accumulation_steps=None",
    "Adamax":
        "learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-07, weight_decay=None, clipnorm=None, clipvalue=None, "
        "global_clipnorm=None, use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None, "
        "gradient_accumulation_steps=None",
    "Ftrl":
        "learning_rate=0.001, learning_rate_power=-0.5, initial_accumulator_value=0.1, l1_regularization_strength=0.0, "
        "l2_regularization_strength=0.0, l2_shrinkage_regularization_strength=0.0, beta=0.0, weight_decay=None, clipnorm=None, "
        "clipvalue=None, global_clipnorm=None, use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None, "
        "gradient_accumulation_steps=None",
    "Lamb":
        "learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-07, weight_decay=None, clipnorm=None, clipvalue=None, "
        "global_clipnorm=None, use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None, "
        "gradient_accumulation_steps=None",
    "Lion":
        "learning_rate=0.001, beta_1=0.9, beta_2=0.99, weight_decay=None, clipnorm=None, clipvalue=None, global_clipnorm=None, "
        "use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None, gradient_accumulation_steps=None",
    "Nadam":
        "learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-07, weight_decay=None, clipnorm=None, clipvalue=None, "
        "global_clipnorm=None, use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None, "
        "gradient_accumulation_steps=None",
    "RMSprop":
        "learning_rate=0.001, rho=0.9, momentum=0.0, epsilon=1e-07, centered=False, weight_decay=None, clipnorm=None, clipvalue=None, "
        "global_clipnorm=None, use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None, "
        "gradient_accumulation_steps=None",
    "SGD":
        "learning_rate=0.01, momentum=0.0, nesterov=False, weight_decay=None, clipnorm=None, clipvalue=None, global_clipnorm=None, "
        "use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None, gradient_accumulation_steps=None",
}
