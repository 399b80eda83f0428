// How entities look: plain shapes on a canvas, in pixels around the origin.

/** The colours of the picture. */
export const INK = {
  ground: "#1d3a2a", line: "#244630", grass: "#35633f", edge: "#0c1711",
  self: "#fde68a", player: "#cbd5e1", friend: "#93c5fd", monster: "#f87171", drop: "#fde047",
  lair: "#1f2937", dot: "#e2e8f0", text: "#ffffff", shade: "rgb(0 0 0 / 70%)", hurt: "#fecaca",
};

/** Pictures of shapes and labels, made once: a picture is drawn faster than its paths. */
class Sprites {
  known = new Map();

  get(key, width, height, ratio, paint) {
    let made = this.known.get(key);
    if (!made) {
      if (this.known.size > 1_200) this.known.clear();
      made = new OffscreenCanvas(Math.ceil(width * ratio), Math.ceil(height * ratio));
      const c = made.getContext("2d");
      c.setTransform(ratio, 0, 0, ratio, made.width / 2, made.height / 2);
      c.textAlign = "center";
      c.textBaseline = "middle";
      paint(c);
      this.known.set(key, made);
    }
    return made;
  }
}

const sprites = new Sprites();

/** The pictures of an entity by where it faces: so many make a turn. */
const HEADINGS = 64;

/** The picture of an entity that faces a direction: 65,536 steps make a turn. */
export function shape(look, r, isGhost, facing, ratio) {
  const isRound = look === "drop" || look === "lair";
  const heading = isRound ? 0 : Math.round(facing * HEADINGS / 65_536) & (HEADINGS - 1);
  // No more than the shape and its outline: empty pixels are copied, too.
  const size = 2 * r * ({ monster: 1.3, drop: 0.75 }[look] ?? 1.65) + 4;
  return sprites.get(`${look} ${r} ${isGhost} ${heading} ${ratio}`, size, size, ratio, (c) => {
    c.rotate(2 * Math.PI * heading / HEADINGS);
    switch (look) {
      case "monster": return monster(c, r, isGhost);
      case "drop": return drop(c, r, isGhost);
      case "lair": return lair(c, r, isGhost);
      default: return player(c, r, INK[look] ?? INK.player, isGhost);
    }
  });
}

/** The picture of a text: white on a shade, readable on every ground. */
export function label(text, colour, ratio) {
  return sprites.get(`text ${text} ${colour} ${ratio}`, text.length * 9 + 16, 24, ratio, (c) => {
    c.font = "600 13px system-ui, sans-serif";
    c.lineWidth = 3.5;
    c.strokeStyle = INK.shade;
    c.strokeText(text, 0, 0);
    c.fillStyle = colour;
    c.fillText(text, 0, 0);
  });
}

/** A player: a disc with a wedge that points to the east. */
function player(c, r, colour, isGhost) {
  c.beginPath();
  c.moveTo(r * 1.65, 0);
  c.lineTo(r * 0.55, -r * 0.8);
  c.lineTo(r * 0.55, r * 0.8);
  c.closePath();
  c.fillStyle = colour;
  c.fill();
  disc(c, r, colour, isGhost);
}

/** A monster: a star with eight points, and eyes in the east. */
function monster(c, r, isGhost) {
  c.beginPath();
  for (let n = 0; n < 16; n++) {
    const far = n % 2 ? r * 0.86 : r * 1.3;
    c.lineTo(Math.cos(n * Math.PI / 8) * far, Math.sin(n * Math.PI / 8) * far);
  }
  c.closePath();
  c.fillStyle = INK.monster;
  c.fill();
  outline(c, isGhost);
  c.fillStyle = "#1c0a0a";
  for (const side of [-1, 1]) {
    c.beginPath();
    c.arc(r * 0.45, side * r * 0.35, r * 0.17, 0, 7);
    c.fill();
  }
}

/** A drop: a coin. */
function drop(c, r, isGhost) {
  disc(c, r * 0.75, INK.drop, isGhost);
  c.fillStyle = "#854d0e";
  c.font = `700 ${Math.round(r)}px system-ui, sans-serif`;
  c.fillText("g", 0, r * 0.05);
}

/** A lair: a dark hole. */
function lair(c, r, isGhost) {
  c.save();
  c.scale(1.6, 1.1);
  disc(c, r, INK.lair, isGhost);
  c.restore();
}

function disc(c, r, colour, isGhost) {
  c.beginPath();
  c.arc(0, 0, r, 0, 7);
  c.fillStyle = colour;
  c.fill();
  outline(c, isGhost);
}

/** Copies that another region owns have a dashed outline. */
function outline(c, isGhost) {
  c.lineWidth = isGhost ? 2.5 : 1.5;
  c.strokeStyle = isGhost ? "#f0abfc" : "rgb(0 0 0 / 65%)";
  if (isGhost) c.setLineDash([4, 3]);
  c.stroke();
  if (isGhost) c.setLineDash([]);
}

/** The picture of hit points, a share from 0 to 1. */
export function bar(r, share, ratio) {
  const w = Math.round(r * 2.6);
  const full = Math.round(w * Math.max(0, Math.min(share, 1)));
  return sprites.get(`bar ${w} ${full} ${ratio}`, w, 5, ratio, (c) => {
    c.fillStyle = INK.shade;
    c.fillRect(-w / 2, -2.5, w, 5);
    c.fillStyle = share > 0.5 ? "#4ade80" : share > 0.25 ? "#facc15" : "#f87171";
    c.fillRect(-w / 2, -2.5, full, 5);
  });
}
