// What the page knows of scenes: names of kinds and properties, and regions with their owners.

export class Scenes {
  constructor(told) {
    this.join = told.join;
    this.scenes = told.scenes;
  }

  static async load() {
    const answer = await fetch("/play/scenes");
    if (!answer.ok) throw new Error(`the server does not tell its scenes: ${answer.status}`);
    return new Scenes(await answer.json());
  }

  async refresh() {
    this.scenes = (await Scenes.load()).scenes;
  }

  /** The names of kinds and properties, as the client library takes them. */
  schema() {
    const property = ({ id, name }) => ({ id, name, type: "any", audience: "viewers", writer: "logic" });
    const kind = ({ name, properties }) => ({ name, properties: properties.map(property) });
    return { scenes: this.scenes.map(({ name, kinds }) => ({ name, kinds: kinds.map(kind) })) };
  }

  scene(name) {
    return this.scenes.find((scene) => scene.name === name);
  }

  /** The region that owns a place. Instances are in the group of their plane. */
  region(scene, plane, at) {
    const all = this.regions(scene, plane);
    return all.find((r) => at.x >= r.x0 && at.x < r.x1 && at.z >= r.z0 && at.z < r.z1);
  }

  regions(scene, plane, home = null) {
    const all = this.scene(scene)?.regions ?? [];
    const groups = Math.max(...all.map((region) => region.group), 0) + 1;
    const group = ((plane % groups) + groups) % groups;
    return all.filter((region) => region.group === group).map(({ id, rect, owner, reals, ghosts }) => ({
      id, ...rect, reals, ghosts, owner, isHome: id === home,
      text: `region ${id} · ${owner ?? "another process"} · ${reals} own, ${ghosts} ghosts`,
    }));
  }
}
