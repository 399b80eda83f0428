// Events: a list of listeners for each name.
/** `E` maps each event's name to the arguments of its listeners. */
export class Emitter {
    listeners = new Map();
    /** Calls `listener` at each event of this name. Gives a function that ends that. */
    on(name, listener) {
        let all = this.listeners.get(name);
        if (!all)
            this.listeners.set(name, (all = new Set()));
        all.add(listener);
        return () => all.delete(listener);
    }
    /** Resolves with the arguments of the next event of this name. */
    once(name) {
        return new Promise((resolve) => {
            const off = this.on(name, (...args) => {
                off();
                resolve(args);
            });
        });
    }
    emit(name, ...args) {
        for (const listener of [...(this.listeners.get(name) ?? [])])
            listener(...args);
    }
}
