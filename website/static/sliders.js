// Sliders without a kernel: each position of them has a figure that was drawn when the site was built.
document.addEventListener("DOMContentLoaded", () => {
  /** What website/frames.py has packed. */
  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  async function start(box) {
    const { sliders, lines, frames, words } = await unpacked(window.frames_of[box.dataset.frames]);
    const drawing = box.querySelector(".drawing");
    const said = Object.assign(document.createElement("p"), { ariaLive: "polite", className: "said" });
    const inputs = sliders.map(({ name, values, start }) => {
      const input = Object.assign(document.createElement("input"), { type: "range", min: 0, max: values.length - 1 });
      input.value = values.indexOf(start);
      const number = document.createElement("output");
      const label = document.createElement("label");
      label.append(name.replaceAll("_", " ") + " ", input, " ", number);
      box.insertBefore(label, drawing);
      const show = () => (number.textContent = values[input.value]);
      input.addEventListener("input", () => (show(), redraw()));
      show();
      return input;
    });
    const redraw = () => {
      const k = inputs.reduce((sum, input, i) => sum * sliders[i].values.length + Number(input.value), 0);
      const markup = frames[k].map((line) => lines[line]).join("\n");
      drawing.innerHTML = markup.slice(markup.indexOf("<svg"));
      said.textContent = words[k];
    };
    box.append(said);
    redraw();
  }

  document.querySelectorAll(".sliders").forEach(start);
});
