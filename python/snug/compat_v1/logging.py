"""tf.compat.v1.logging: Python's logging under TensorFlow's names."""
import logging as _logging

DEBUG, INFO, WARN, ERROR, FATAL = _logging.DEBUG, _logging.INFO, _logging.WARN, _logging.ERROR, _logging.FATAL
_logger = _logging.getLogger("tensorflow")
info, warn, warning, error, debug, fatal = (_logger.info, _logger.warning, _logger.warning, _logger.error, _logger.debug,
                                            _logger.critical)


def set_verbosity(level):
    _logger.setLevel(level)


def get_verbosity():
    return _logger.level
