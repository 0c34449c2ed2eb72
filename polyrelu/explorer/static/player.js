// One time for all views: a slider in frames, and play.

const SECONDS = 6; // a whole run

export class Player {
  constructor(changed) {
    this.x = 0; this.playing = false; this.changed = changed;
    this.slider = document.querySelector("#time"); this.button = document.querySelector("#play");
    this.slider.addEventListener("input", () => this.seek(this.slider.value / 1000));
    this.button.addEventListener("click", () => this.toggle());
    document.addEventListener("keydown", (event) => {
      if (event.key !== " " || event.target.closest("button, input, select, summary, a")) return;
      event.preventDefault(); this.toggle();
    });
  }

  // How far, from 0 to 1.
  get share() { return this.length ? this.x / this.length : 1; }

  seek(share) {
    this.pause();
    this.x = Math.max(0, Math.min(1, share)) * this.length;
    this.changed();
  }

  toggle() { this.playing ? this.pause() : this.play(this.share >= 1 ? 0 : this.share); }

  play(from = 0) {
    this.x = from * this.length; this.playing = true; this.changed();
  }

  pause() { this.playing = false; }

  // `length` frames are there so far; more may come while a flow is `open`.
  advance(seconds, length, open) {
    const speed = Math.max(length, open ? 30 : 1) / SECONDS;
    this.length = length;
    if (this.playing) {
      this.x = Math.min(length, this.x + seconds * speed);
      if (this.x >= length && !open) this.pause();
    }
    this.x = Math.min(this.x, length);
    this.button.textContent = this.playing ? "❚❚" : "▶";
    this.button.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    if (document.activeElement !== this.slider || this.playing) this.slider.value = Math.round(1000 * this.share);
  }
}
