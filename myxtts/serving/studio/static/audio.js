// Sound: playing one thing at a time, recording from the microphone, and files of it.
import { blob, el, onLeave, t } from "./core.js";
import { guard } from "./takes.js";

let player = null, playing = null;

function halt() {
  if (player) { player.pause(); URL.revokeObjectURL(player.src); player = null; }
  if (playing) { playing.set(false); playing = null; }
}

// A button that plays what a path of the API answers with; another one stops it.
export function playButton(path, label, line) {
  const button = el("button", { type: "button", className: "plain small play", "aria-label": label, "aria-pressed": "false" }, "▶");
  button.set = on => { button.textContent = on ? "■" : "▶"; button.setAttribute("aria-pressed", on); };
  button.onclick = async () => {
    const was = playing === button;
    halt();
    if (was) return;
    playing = button;
    onLeave(halt);
    button.set(true);
    try {
      const content = await blob(typeof path === "function" ? path() : path);
      if (playing !== button) return;
      player = new Audio(URL.createObjectURL(content));
      player.onended = halt;
      await player.play();
    } catch (error) {
      if (playing === button) halt();
      if (error.name !== "AbortError") line?.set(error.message, "error");
    }
  };
  return button;
}

export function wavOf(parts, rate) {
  const size = parts.reduce((sum, part) => sum + part.byteLength, 0);
  const head = new DataView(new ArrayBuffer(44));
  const text = (at, word) => [...word].forEach((letter, i) => head.setUint8(at + i, letter.charCodeAt(0)));
  text(0, "RIFF"); head.setUint32(4, 36 + size, true); text(8, "WAVEfmt ");
  head.setUint32(16, 16, true); head.setUint16(20, 1, true); head.setUint16(22, 1, true);
  head.setUint32(24, rate, true); head.setUint32(28, 2 * rate, true);
  head.setUint16(32, 2, true); head.setUint16(34, 16, true);
  text(36, "data"); head.setUint32(40, size, true);
  return new Blob([head.buffer, ...parts], { type: "audio/wav" });
}

// Records the microphone, without what browsers do to voices; ends with a WAV file.
export class Recorder {
  async start(onlevel) {
    if (!navigator.mediaDevices) throw new Error(t("noMicrophone"));
    const quiet = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    try { this.stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, ...quiet } }); }
    catch { throw new Error(t("microphoneRefused")); }
    try { await this.connect(onlevel); } catch (error) { this.close(); throw error; }
  }

  async connect(onlevel) {
    this.context = new AudioContext();
    await this.context.audioWorklet.addModule("/studio/static/recorder.js");
    this.parts = [];
    const source = this.context.createMediaStreamSource(this.stream);
    this.node = new AudioWorkletNode(this.context, "recorder", { numberOfOutputs: 0 });
    this.node.port.onmessage = ({ data }) => {
      if (data === null) return this.ended?.();
      let peak = 0;
      const samples = new Int16Array(data.length);
      for (let i = 0; i < data.length; i++) {
        const one = Math.max(-1, Math.min(1, data[i]));
        samples[i] = Math.round(one * 32767);
        peak = Math.max(peak, Math.abs(one));
      }
      this.parts.push(samples);
      onlevel?.(peak);
    };
    source.connect(this.node);
  }

  // Ends with what was said last, which the worklet still holds.
  async stop() {
    await new Promise(done => {
      this.ended = done;
      this.node.port.postMessage(null);
      setTimeout(done, 500);
    });
    const rate = this.context.sampleRate;
    this.close();
    return wavOf(this.parts, rate);
  }

  close() {
    this.stream.getTracks().forEach(one => one.stop());
    this.node?.disconnect();
    if (this.context && this.context.state !== "closed") this.context.close();
  }
}

// Record, stop, listen: calls `taken` with each recording.
export function recordControls(line, taken) {
  let recorder = null, left = false;
  onLeave(() => { left = true; guard(button, false); recorder?.close(); recorder = null; });
  const level = el("meter", { min: 0, max: 1, low: 0.05, high: 0.95, optimum: 0.5, value: 0, "aria-label": t("level"), hidden: true });
  const button = el("button", { type: "button", className: "record" }, t("record"));
  button.onclick = async () => {
    line.set("");
    if (recorder) {
      const own = recorder;
      recorder = null;
      button.disabled = true;
      const sound = await own.stop();
      button.disabled = false;
      button.textContent = t("record");
      level.hidden = true;
      taken(sound);  // though the page may show something else by now
      return guard(button, false);
    }
    const own = new Recorder();
    button.disabled = true;
    try {
      let loudest = 0;
      await own.start(peak => { loudest = Math.max(peak, loudest * 0.9); level.value = loudest; if (peak >= 0.999) line.set(t("tooLoud"), "error"); });
      if (left) return own.close();
      recorder = own;
      guard(button, true);
      button.textContent = t("stopRecording");
      level.hidden = false;
    } catch (error) { line.set(error.message, "error"); }
    button.disabled = false;
  };
  return [button, level];
}
