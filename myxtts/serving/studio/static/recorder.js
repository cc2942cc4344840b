// Runs beside the page: hands samples over in blocks.
class Recorder extends AudioWorkletProcessor {
  constructor() { super(); this.block = new Float32Array(4096); this.at = 0; this.over = false;
    this.port.onmessage = () => { this.over = true; this.port.postMessage(this.block.slice(0, this.at)); this.port.postMessage(null); };
  }
  process([input]) {
    if (this.over) return false;
    if (!input.length) return true;
    for (const sample of input[0]) {
      this.block[this.at++] = sample;
      if (this.at === this.block.length) { this.port.postMessage(this.block); this.block = new Float32Array(4096); this.at = 0; }
    }
    return true;
  }
}
registerProcessor("recorder", Recorder);
