// The panels over the world: hit points, gold, party, chat, figures. Text from others is only ever
// set as text.

const LINES_MAX = 8;

const by = (id) => document.getElementById(id);

export class Hud {
  constructor({ say, act }) {
    this.form = by("say");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = by("text").value.trim();
      by("text").value = "";
      if (text) say(by("to").value, text);
      by("world").focus();
    });
    by("text").addEventListener("keydown", (event) => {
      if (event.key === "Escape") by("world").focus();
    });
    for (const button of document.querySelectorAll("#acts button")) {
      button.addEventListener("click", () => act(button.dataset.act));
    }
  }

  show() {
    for (const id of ["self", "figures", "talk", "acts"]) by(id).hidden = false;
    by("world").focus();
  }

  chat() {
    by("text").focus();
  }

  /** A switch: shows or hides a panel. Returns whether it is on. */
  toggle(name, panel) {
    const button = document.querySelector(`[data-act="${name}"]`);
    const isOn = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(isOn));
    by(panel).hidden = !isOn;
    return isOn;
  }

  self({ name, place, hp, hpMax, gold, party }) {
    by("name").textContent = name;
    by("place").textContent = place;
    by("gold").textContent = `${gold} gold`;
    by("party").textContent = party === null ? "no party" : `party ${party}`;
    const meter = by("hp");
    meter.classList.toggle("low", hp <= hpMax * 0.3);
    meter.setAttribute("aria-valuenow", hp);
    meter.setAttribute("aria-valuemax", hpMax);
    meter.firstElementChild.style.transform = `scaleX(${Math.max(0, hp / hpMax)})`;
    meter.lastElementChild.textContent = `${hp} / ${hpMax}`;
  }

  /** A line of the chat: somebody says something, or an event. */
  line(who, text, kind) {
    // The same event again is no news.
    if (kind === "event" && by("log").lastElementChild?.textContent === text) return;
    const line = document.createElement("li");
    line.className = kind;
    if (who) {
      const name = document.createElement("b");
      name.textContent = `${who}: `;
      line.append(name);
    }
    line.append(text);
    by("log").append(line);
    while (by("log").childElementCount > LINES_MAX) by("log").firstElementChild.remove();
  }

  fields(texts) {
    for (const [id, text] of Object.entries(texts)) by(id).textContent = text;
  }

  region(text) {
    by("region-text").textContent = text;
  }

  /** A notice in the middle; null hides it. */
  notice(text) {
    by("notice").hidden = text === null;
    by("notice").textContent = text ?? "";
  }
}

/** Asks for a name once, and keeps it. */
export function askName() {
  const [dialog, field] = [by("welcome"), by("own")];
  const known = localStorage.getItem("purview-name");
  if (known) return Promise.resolve(known);
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  dialog.showModal();
  return new Promise((resolve) => {
    by("enter").addEventListener("submit", (event) => {
      const name = field.value.trim();
      if (!name) {
        event.preventDefault();
        return;
      }
      localStorage.setItem("purview-name", name);
      resolve(name);
    });
  });
}
