// Looking closer: wheel, double click, drag, and the keys + and -.

const MOST = 8; // times

export class Zoom {
  // moved(scale) is called when the scale changes
  constructor(frame, moved = () => {}) {
    this.frame = frame;
    this.moved = moved;
    this.reset();
    frame.addEventListener("wheel", (event) => {
      if (!this.target) return;
      event.preventDefault();
      this.by(event.deltaY < 0 ? 1.25 : 0.8, event);
    }, { passive: false });
    frame.addEventListener("dblclick", (event) => this.by(this.scale > 1 ? 0 : 2.5, event));
    frame.addEventListener("pointerdown", (event) => {
      if (this.scale === 1 || event.button) return;
      frame.setPointerCapture(event.pointerId);
      this.held = { x: event.clientX - this.x, y: event.clientY - this.y };
    });
    frame.addEventListener("pointermove", (event) => {
      if (!this.held) return;
      this.x = event.clientX - this.held.x;
      this.y = event.clientY - this.held.y;
      this.draw();
    });
    for (const end of ["pointerup", "pointercancel"]) frame.addEventListener(end, () => { this.held = null; });
  }

  reset(target = null) {
    this.target = target;
    this.scale = 1;
    this.x = this.y = 0;
    this.held = null;
    this.frame.classList.remove("zoomed");
    if (target) this.draw();
  }

  // Times a factor, 0 for all the way out; the point under the pointer stays where it is.
  by(factor, event = null) {
    if (!this.target) return;
    const before = this.scale;
    this.scale = factor ? Math.min(MOST, Math.max(1, this.scale * factor)) : 1;
    const box = this.frame.getBoundingClientRect();
    const fromCentreX = event ? event.clientX - box.left - box.width / 2 : 0;
    const fromCentreY = event ? event.clientY - box.top - box.height / 2 : 0;
    const ratio = this.scale / before;
    this.x = fromCentreX - (fromCentreX - this.x) * ratio;
    this.y = fromCentreY - (fromCentreY - this.y) * ratio;
    this.draw();
    if (this.scale !== before) this.moved(this.scale);
  }

  draw() {
    const box = this.frame.getBoundingClientRect();
    const limitX = (box.width * (this.scale - 1)) / 2;
    const limitY = (box.height * (this.scale - 1)) / 2;
    this.x = Math.min(limitX, Math.max(-limitX, this.x));
    this.y = Math.min(limitY, Math.max(-limitY, this.y));
    this.target.style.transform = this.scale === 1 ? "" : `translate(${this.x}px, ${this.y}px) scale(${this.scale})`;
    this.frame.classList.toggle("zoomed", this.scale > 1);
  }
}
