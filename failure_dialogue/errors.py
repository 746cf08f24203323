"""The one tree of errors: each message says what is wrong, the value, and what to do."""


class FailureDialogueError(Exception):
    """Base of every error this project raises on purpose."""


class ConfigError(FailureDialogueError):
    """A file or parameter given by the user cannot be used as it is."""


class VocabularyError(ConfigError):
    """A family, cause or repair is unknown, or failures.yaml is malformed."""


class CostError(ConfigError):
    """Stated costs or answerer rates for which no decision exists."""


class RecordError(ConfigError):
    """A commissioning record is missing, malformed or does not fit the models in use."""


class ModelError(ConfigError):
    """A model file is missing, altered, or has other inputs or classes than declared."""


class SplitError(FailureDialogueError):
    """An episode of the wrong split was offered where only another may be used."""


class EvidenceError(FailureDialogueError):
    """Sensor data is missing, stale or inconsistent; carries which and why."""


class SceneError(FailureDialogueError):
    """A simulated scene cannot be built, cached or loaded."""


class RepairError(FailureDialogueError):
    """A repair was refused or stopped before it was done."""


class SetupError(FailureDialogueError):
    """Something that the set-up installs is missing."""
