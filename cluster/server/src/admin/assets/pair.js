// Compares two players: why they see each other, or why they do not.

const $ = (id) => document.getElementById(id);

/** How long one of the two may be missing, as in a handoff, before it counts as gone, in milliseconds. */
const GONE_MS = 2500;

/** The player compared with the selected one, and the server's answer about the two. */
export class Pair {
  constructor() { this.choose(null, 0); }

  /** Compares with this player from `now` on; `null` ends the comparison. */
  choose(other, now) {
    Object.assign(this, { other, answer: null, answeredAt: now, gone: false });
  }

  /** The request to the server; `null` without a comparison. */
  path(selected) {
    return this.other === null ? null : `api/why?a=${selected}&b=${this.other}`;
  }

  /** Applies an answer, `null` if one of the two is missing. Returns whether it is the first. */
  apply(answer, now) {
    const first = answer !== null && this.answer === null;
    if (answer) Object.assign(this, { answer, answeredAt: now, gone: false });
    else if (now - this.answeredAt > GONE_MS) this.gone = true;
    return first;
  }

  /** Whether the two see each other, according to the last answer. */
  get seen() { return this.answer !== null && !this.gone && this.answer.seen; }

  /** The sentences to show. */
  get sentences() {
    if (this.other === null) return [];
    if (this.gone) return [`No region has ${this.other}, or the selected player is gone.`];
    return this.answer?.sentences ?? [`Asking about ${this.other} …`];
  }
}

/** Shows the sentences; unchanged ones are not touched. */
export function showPair(pair) {
  const box = $("pair-sentences");
  const { sentences } = pair;
  $("pair-clear").hidden = pair.other === null;
  box.hidden = sentences.length === 0;
  box.classList.toggle("seen", pair.seen);
  while (box.children.length > sentences.length) box.lastChild.remove();
  while (box.children.length < sentences.length) box.append(document.createElement("p"));
  sentences.forEach((text, i) => {
    if (box.children[i].textContent !== text) box.children[i].textContent = text;
  });
  const field = $("pair-id");
  const id = pair.other === null ? "" : String(pair.other);
  if (document.activeElement !== field && field.value !== id) field.value = id;
}

/**
 * Listens to the field, its button and its Escape key. Calls `compare(id)` with the player to compare
 * with, or `null`.
 */
export function listenPair(compare) {
  const clear = () => {
    $("pair-id").value = "";
    compare(null);
  };
  $("pair").addEventListener("submit", (event) => {
    event.preventDefault();
    const id = $("pair-id").value.trim();
    if (/^[0-9]+$/.test(id)) compare(Number(id));
    else clear();
  });
  $("pair-id").addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });
  $("pair-clear").addEventListener("click", clear);
}
