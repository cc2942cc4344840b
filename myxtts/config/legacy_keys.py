"""The keys of the earlier program's YAML files: what became of each."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Renamed(NamedTuple):
    """The path that took a key over, and how its value reads there, given its section."""

    path: str
    convert: Callable[[Any, Mapping[str, Any]], Any] = lambda value, section: value


def _paths(section: str, names: str) -> tuple[str, ...]:
    return tuple(f"{section}.{name}" for name in names.split())


def _units(phonemes: Any, section: Mapping[str, Any]) -> str:
    return "phonemes" if phonemes else "characters"


def _loudness(value: Any, section: Mapping[str, Any]) -> Any:
    """Two keys made one: a target counted unless its switch was off."""
    is_on = section.get("enable_loudness_normalization", True)
    return section.get("target_loudness_lufs", -23.0) if is_on else None


# A whole section under another name.
RENAMED_SECTIONS = {"audio": "data"}

# Taken, with a warning that names the successor. A value under the successor's own name wins.
RENAMED: dict[str, Renamed] = {
    "data.speaker_id_pattern": Renamed("data.speaker_pattern"),
    "training.enable_automatic_evaluation": Renamed("training.enable_evaluation"),
    "data.auto_tune_performance": Renamed("training.auto_tune"),
    "data.val_split": Renamed("data.val_fraction"),
    "data.min_audio_length": Renamed("data.min_seconds"),
    "data.min_wav_length": Renamed("data.min_seconds"),
    "data.target_loudness_lufs": Renamed("data.loudness_lufs", _loudness),
    "data.enable_loudness_normalization": Renamed("data.loudness_lufs", _loudness),
    "data.enable_phone_normalization": Renamed("data.text_units", _units),
    "data.enable_phonemes": Renamed("data.text_units", _units),
    "model.sample_rate": Renamed("data.sample_rate"),
    "model.n_fft": Renamed("data.n_fft"),
    "model.hop_length": Renamed("data.hop_length"),
    "model.win_length": Renamed("data.win_length"),
    "model.n_mels": Renamed("data.n_mels"),
    "model.n_mel_channels": Renamed("data.n_mels"),
    "model.fmin": Renamed("data.fmin"),
    "model.fmax": Renamed("data.fmax"),
    "model.max_text_length": Renamed("data.max_text_length"),
    "model.mixed_precision": Renamed("data.mixed_precision"),
    "model.contrastive_loss_margin": Renamed("training.contrastive_loss_margin"),
    "model.contrastive_loss_temperature": Renamed("training.contrastive_loss_temperature"),
    "model.pretrained_speaker_encoder_path": Renamed("model.speaker_encoder_path"),
    "training.batch_size": Renamed("data.batch_size"),
    "training.num_workers": Renamed("data.num_workers"),
    "training.enable_mixed_precision": Renamed("data.mixed_precision"),
    "training.use_mixed_precision": Renamed("data.mixed_precision"),
    "training.max_epochs": Renamed("training.epochs"),
    "training.use_two_stage_training": Renamed("training.two_stage_training"),
    "training.accumulate_grad_batches": Renamed("training.gradient_accumulation_steps"),
    "training.attention_loss_weight": Renamed("training.alignment_loss_weight"),
    "training.checkpoint_interval": Renamed("training.save_interval"),
    "training.save_step": Renamed("training.save_interval"),
    "training.gradient_clip_val": Renamed("training.gradient_clip_norm"),
    "training.log_step": Renamed("training.log_interval"),
    "training.val_step": Renamed("training.validation_interval"),
    "training.use_adaptive_loss_weights": Renamed("training.adaptive_loss_weights"),
    "paths.cache_dir": Renamed("data.cache_dir"),
    "paths.checkpoint_dir": Renamed("training.checkpoint_dir"),
}

# Ignored, with a warning: no successor.
RETIRED: frozenset[str] = frozenset(
    (
        *("gpu_optimization", "gpu_optimizations", "logging", "loss", "vocoder"),
        *("debug", "use_tensorboard", "paths.log_dir"),
        *_paths(
            "data",
            """
            add_blank async_data_loading cache_data dataset_name drop_last
            enable_audio_normalization enable_data_validation enable_multilingual
            enable_multispeaker enable_noise_mixing enable_pitch_shift enable_tensorrt
            enable_text_normalization enable_vad eval_subset_fraction
            gradient_accumulation_steps language_detection_method
            max_audio_length max_speakers max_text_tokens max_wav_length mel_mean mel_std
            min_text_length multiprocessing_context noise_mixing_probability noise_mixing_snr_range
            normalize_audio pad_to_fixed_length persistent_workers phoneme_language pin_memory
            pitch_shift_range prefetch_factor preload_data reference_audio_length silence_threshold
            sort_by_length subset_seed supported_languages text_cleaners train_split
            train_subset_fraction use_phonemes
            """,
        ),
        *_paths(
            "model",
            """
            architecture attention_dim attention_dropout attention_implementation
            attention_location_n_filters audio_encoder audio_encoder_depth audio_encoder_dropout
            d_model decoder decoder_attention_heads decoder_cross_attention decoder_depth
            decoder_dropout diffusion_beta_schedule diffusion_timesteps dropout_rate
            enable_diffusion_inference enable_gradient_checkpointing enable_speaker_interpolation
            enable_voice_adaptation enable_voice_denoising enable_weight_tying
            encoder_attention_heads languages max_attention_sequence_length
            max_reference_audio_length mel_input_dim min_reference_audio_length model_type
            multi_language n_heads n_layers n_speakers optimized_vocab_size postnet_dim
            postnet_dropout postnet_kernel_size postnet_n_convolutions prenet_dim prenet_dropout
            shared_embedding_languages speaker_embedding speaker_encoder_layers text_encoder
            text_encoder_conv_kernel_size text_encoder_depth text_encoder_dropout text_vocab_size
            tokenizer_model tokenizer_type use_attention_prenet use_duration_predictor
            use_memory_efficient_attention use_optimized_nllb_vocab use_speaker_embedding
            use_voice_conditioning vocab_optimization_method voice_cloning_temperature
            voice_conditioning_layers voice_conditioning_strength voice_encoder_dropout
            voice_feature_dim voice_similarity_threshold
            """,
        ),
        *_paths(
            "training",
            """
            auto_lr_reduction auxiliary_head_regularization convergence_threshold convergence_window
            cosine_restarts dropout_rate early_stopping_restore_best_weights
            enable_gradient_monitoring enable_memory_cleanup enable_memory_efficient_attention
            gradient_norm_threshold label_smoothing label_smoothing_factor loss_alert_threshold
            loss_scale_patience loss_scale_strategy loss_smoothing_factor lr_reduction_factor
            lr_reduction_patience max_attention_sequence_length max_duration_frames
            max_loss_spike_threshold max_memory_fraction mel_label_smoothing mel_loss_type
            restart_mult restart_period save_best_only save_weights_only scheduler_params
            spectrogram_log_example_index spectrogram_log_interval spectrogram_log_num_examples
            spectrogram_reference_index spectrogram_reference_subset stop_label_smoothing
            teacher_forcing_ratio track_loss_components use_huber_loss
            huber_delta use_label_smoothing use_simple_loss use_warmup_cosine_schedule
            """,
        ),
    )
)

# What to use instead of a retired key, where there is something near it.
HINTS: dict[str, str] = {
    "data.enable_audio_normalization": "see data.loudness_lufs",
    "data.enable_vad": "see data.trim_silence",
    "data.max_audio_length": "see data.max_mel_frames",
    "data.max_text_tokens": "see data.max_text_length",
    "data.max_wav_length": "see data.max_mel_frames",
    "data.normalize_audio": "see data.loudness_lufs",
    "data.pad_to_fixed_length": "see data.pad_to_multiple",
    "data.pin_memory": "see data.prefetch_to_gpu",
    "data.preload_data": "see data.memory_cache",
    "data.silence_threshold": "see data.trim_top_db",
    "data.train_split": "what validation leaves; see data.val_fraction",
    "data.use_phonemes": "see data.text_units",
    "model.max_attention_sequence_length": "see data.max_text_length",
}

# Ignored for now, with a warning. Whoever adds the field to its section deletes the line here.
NOT_YET: frozenset[str] = frozenset(
    (
        *_paths(
            "model",
            """
            audio_encoder_heads decoder_heads gst_enable_emotion_control
            gst_enable_speaking_rate_control gst_reference_encoder_dim
            gst_style_loss_weight vocoder_initial_channel vocoder_resblock_dilation_sizes
            vocoder_resblock_kernel_sizes vocoder_upsample_kernel_sizes
            vocoder_upsample_rates voice_cloning_loss_weight
            """,
        ),
        *_paths(
            "training",
            """
            checkpoint_path early_stopping_min_delta early_stopping_patience
            eps feature_loss_weight kl_loss_weight multi_gpu optimizer prosody_energy_loss_weight
            prosody_matching_loss_weight prosody_pitch_loss_weight scheduler
            speaking_rate_loss_weight spectral_consistency_loss_weight
            stage1_checkpoint_path stage2_checkpoint_path
            visible_gpus vocoder_feature_loss_weight
            vocoder_mel_loss_weight voice_reconstruction_loss_weight
            """,
        ),
    )
)
