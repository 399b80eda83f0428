// Events: a list of listeners for each name.

export type Listener<A extends unknown[]> = (...args: A) => void;

/** `E` maps each event's name to the arguments of its listeners. */
export class Emitter<E extends { [name: string]: unknown[] }> {
  private readonly listeners = new Map<keyof E, Set<Listener<never>>>();

  /** Calls `listener` at each event of this name. Gives a function that ends that. */
  on<K extends keyof E>(name: K, listener: Listener<E[K]>): () => void {
    let all = this.listeners.get(name);
    if (!all) this.listeners.set(name, (all = new Set()));
    all.add(listener as Listener<never>);
    return () => all.delete(listener as Listener<never>);
  }

  /** Resolves with the arguments of the next event of this name. */
  once<K extends keyof E>(name: K): Promise<E[K]> {
    return new Promise((resolve) => {
      const off = this.on(name, (...args: E[K]) => {
        off();
        resolve(args);
      });
    });
  }

  protected emit<K extends keyof E>(name: K, ...args: E[K]): void {
    for (const listener of [...(this.listeners.get(name) ?? [])]) (listener as Listener<E[K]>)(...args);
  }
}
