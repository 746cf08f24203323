"""Names of all topics, services and actions, in one place."""

PREFIX = "/failure_dialogue/"

# Sensors of the robot (remappable: an arm's own names stand in its parameter file).
IMAGE = "/camera/color/image_raw"
CAMERA_INFO = "/camera/color/camera_info"
WRENCH = "/force_torque_sensor_broadcaster/wrench"
JOINT_STATES = "/joint_states"
TF_STATIC = "/tf_static"

# Topics of the exchange.
FAILURE = PREFIX + "failure"
DIAGNOSIS = PREFIX + "diagnosis"
DECISION = PREFIX + "decision"
QUESTION = PREFIX + "question"
REPLY = PREFIX + "reply"
SAY = PREFIX + "say"  # std_msgs/String, what the robot says besides its questions, from the dialogue
REPLY_MEANING = PREFIX + "reply_meaning"
OUTCOME = PREFIX + "outcome"
EPISODE = PREFIX + "episode"
STOP = PREFIX + "stop"
HEARTBEAT = PREFIX + "heartbeat"  # std_msgs/Header, from the decision, 10 Hz
PHASE = PREFIX + "phase"  # failure_dialogue_msgs/Phase, from the robot, as each phase of a motion begins
ROBOT_MODE = (
    PREFIX + "robot_mode"
)  # std_msgs/String: ready, moving, holding, stopped, person (transient local)

# Services.
SENSE = PREFIX + "sense"
HOLD = PREFIX + "hold"
TAKEOVER = PREFIX + "takeover"
HAND_BACK = PREFIX + "hand_back"
CAPTURE_STILL = PREFIX + "capture_still"
START_TASK = PREFIX + "start_task"

# Actions.
ATTEMPT_TASK = PREFIX + "attempt_task"
EXECUTE_REPAIR = PREFIX + "execute_repair"
RUN_RECHECK = PREFIX + "run_recheck"

# Simulation only.
RESET_SCENE = "/sim/reset"
