"""The settings of training: its length, optimizer, losses, checkpoints and second stage."""

from dataclasses import dataclass

from myxtts.config.fields import Section, option, section

LAST_RATE_SHARE = 0.02


@section("training")
@dataclass
class TrainingConfig(Section):
    """How long, from which seed, by which losses, and how TensorFlow runs it."""

    # How long
    epochs: int = option(1000, "passes over the corpus", low=1)
    max_steps: int = option(0, "end after so many steps (0: after the epochs)", low=0)
    seed: int = option(
        42, "what every random choice derives from", low=0, high=2**32 - 1, affects="plan"
    )

    # The optimizer
    learning_rate: float = option(1e-3, "highest learning rate", low=1e-9, high=1.0)
    min_learning_rate: float | None = option(
        None, "learning rate at the end (null: 1/50 of learning_rate)", low=0.0, high=1.0
    )
    lr_schedule: str = option(
        "cosine", "how the learning rate falls after the warm-up", choices=("cosine", "constant")
    )
    warmup_steps: int = option(1000, "steps over which the learning rate rises", low=0)
    beta1: float = option(0.9, "decay of the mean of the gradients", low=0.0, high=0.9999)
    beta2: float = option(0.98, "decay of the mean of the squared gradients", low=0.0, high=0.99999)
    weight_decay: float = option(0.0, "decoupled weight decay (0: none)", low=0.0, high=1.0)
    gradient_clip_norm: float = option(1.0, "largest norm of all gradients (0: any)", low=0.0)
    gradient_accumulation_steps: int = option(
        1, "batches per update of the weights", low=1, high=65_536
    )
    micro_batches: int = option(
        0,
        "parts that each batch is computed in, which the workers must be able to share equally "
        "(0: 1 on one device, else 8 or the next multiple of the workers)",
        low=0,
        high=65_536,
    )
    exact_sums: bool = option(
        False,
        "add up micro-batches in one order, so that any number of workers trains to the same bits; "
        "each worker then receives the gradients of all others",
    )
    steps_per_call: int = option(
        1,
        "most steps that one call of Python takes, over batches of one shape, which then follow "
        "each other; what is due between steps ends a call earlier",
        low=1,
        high=1024,
        affects="plan",
    )
    ema_decay: float = option(0.999, "decay of the EMA weights (0: none)", low=0.0, high=0.99999)

    # The losses
    refiner_start: float = option(
        0.4, "share of all steps after which the refiner begins to learn", low=0.0, high=1.0
    )
    flow_loss_weight: float = option(1.0, "weight of the refiner's flow-matching loss", low=0.0)
    adversarial_start: float = option(
        0.5, "share of all steps after which a discriminator judges the mels", low=0.0, high=1.0
    )
    adversarial_loss_weight: float = option(
        0.1,
        "weight of deceiving the discriminator of mels (0: there is none)",
        low=0.0,
        before=0.0,
    )
    feature_matching_loss_weight: float = option(
        0.5, "weight of matching the activations of the discriminator of mels", low=0.0
    )
    mel_loss_weight: float = option(1.0, "weight of the mel loss", low=0.0)
    stop_loss_weight: float = option(0.2, "weight of the stop loss", low=0.0)
    stop_token_positive_weight: float = option(
        5.0, "weight of the stop frames in the stop loss", low=0.0
    )
    alignment_loss_weight: float = option(0.5, "weight of the alignment loss", low=0.0)
    alignment_prior_steps: int = option(
        200, "steps over which the diagonal prior of the alignment fades", low=0
    )
    duration_loss_weight: float = option(0.3, "weight of the duration loss", low=0.0)
    pitch_loss_weight: float = option(0.1, "weight of the pitch loss", low=0.0)
    energy_loss_weight: float = option(0.1, "weight of the energy loss", low=0.0)
    voice_similarity_loss_weight: float = option(
        0.1,
        "weight of the distance between the reference and the output speaker embedding",
        low=0.0,
    )
    speaker_classification_loss_weight: float = option(
        0.1, "weight of classifying the speakers of the corpus", low=0.0
    )
    contrastive_loss_weight: float = option(
        0.1, "weight of having embeddings of a speaker nearer than those of others", low=0.0
    )
    contrastive_loss_temperature: float = option(
        0.1,
        "temperature of the contrastive loss: smaller is stricter with the nearest other speakers",
        low=0.01,
        high=10.0,
    )
    contrastive_loss_margin: float = option(
        0.2,
        "how much nearer embeddings of the same speaker must be, as a cosine",
        low=0.0,
        high=2.0,
    )
    adaptive_loss_weights: bool = option(
        False, "scale each weight, by a quarter to four, so that no term drowns the others"
    )

    # The run
    checkpoint_dir: str = option(
        "runs/voice", "where checkpoints, logs and the voice are kept", affects="path"
    )
    auto_tune: bool = option(
        False,
        "choose batch size, reader, workers, prefetch depth, residence of the cache and steps per "
        "call by short measurements",
    )
    save_interval: int = option(1000, "steps between two checkpoints", low=1)
    keep_checkpoints: int = option(3, "checkpoints that are kept besides the best", low=1)
    worker_timeout: float = option(
        1800.0,
        "seconds after which a worker that waits for the others gives up",
        low=10.0,
    )
    log_interval: int = option(20, "steps between two entries of the log", low=1)
    validation_interval: int = option(1000, "steps between two validations", low=1)
    sample_interval: int = option(5000, "steps between two spoken samples (0: none)", low=0)
    enable_evaluation: bool = option(False, "evaluate the speech of the voice during training")
    evaluation_interval: int = option(25, "epochs between two evaluations", low=1)
    evaluation_sentences: int = option(8, "held-out sentences of each evaluation", low=1)
    evaluation_metric: str = option(
        "cer",
        "score that decides which voice is the best: a metric of the evaluation, or loss",
    )
    tensorboard_log_dir: str = option(
        "", "TensorBoard's folder, if not in the checkpoint folder", affects="path"
    )
    use_wandb: bool = option(False, "log to Weights & Biases as well")
    wandb_project: str = option("myxtts", "project of Weights & Biases")

    # The second stage
    two_stage_training: bool = option(False, "train a vocoder after the voice")
    stage1_epochs: int = option(0, "passes of the first stage (0: as epochs says)", low=0)
    stage1_learning_rate: float = option(
        0.0,
        "highest learning rate of the first stage (0: as learning_rate says)",
        low=0.0,
        high=1.0,
    )
    stage2_epochs: int = option(1000, "passes of the vocoder over the corpus", low=1)
    stage2_max_steps: int = option(0, "steps of the vocoder (0: as many as the epochs take)", low=0)
    stage2_learning_rate: float = option(
        0.0,
        "learning rate of the vocoder (0: 2e-4 against discriminators, else 2e-3)",
        low=0.0,
        high=1.0,
    )
    stage2_batch_size: int = option(
        16, "segments of recordings per batch of the vocoder", low=1, high=65_536
    )
    stage2_max_audio_seconds: float = option(
        0.0,
        "length of a segment (0: 32 frames against discriminators, else 48)",
        low=0.0,
        high=60.0,
    )
    stage2_from: str = option(
        "",
        "what the vocoder starts from: public weights by name, a checkpoint, or a vocoder's folder",
    )
    stage2_on_predicted_mels: bool = option(
        False, "train the vocoder on teacher-forced (GTA) mels of the voice"
    )
    vocoder_adversarial: bool | None = option(
        None, "train the vocoder against discriminators (null: as suits its kind)"
    )
    discriminator_width: int = option(
        1, "divide the discriminators' channels by so much: 1 is as published", low=1, high=32
    )

    # TensorFlow
    enable_graph_mode: bool = option(True, "run steps as compiled graphs (false: eagerly)")
    enable_xla_compilation: bool | None = option(
        None, "compile graphs with XLA (null: where there is a GPU)"
    )
    enable_eager_debug: bool = option(False, "run everything eagerly, to debug step by step")
    operation_threads: int | None = option(
        None,
        "threads that a CPU computes one operation of the model with (0: as TensorFlow chooses; "
        "null: 1 for the size tiny on two cores, otherwise as TensorFlow chooses)",
        low=0,
        high=1024,
    )

    @property
    def last_learning_rate(self) -> float:
        """The learning rate at the end; it follows the highest one unless it is set."""
        if self.min_learning_rate is None:
            return LAST_RATE_SHARE * self.learning_rate
        return self.min_learning_rate

    def check(self) -> None:
        """Raise ConfigError where two values do not fit each other."""
        self.require(
            self.last_learning_rate <= self.learning_rate,
            "{min_learning_rate} is above {learning_rate}",
        )
