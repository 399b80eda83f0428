export type Listener<A extends unknown[]> = (...args: A) => void;
/** `E` maps each event's name to the arguments of its listeners. */
export declare class Emitter<E extends {
    [name: string]: unknown[];
}> {
    private readonly listeners;
    /** Calls `listener` at each event of this name. Gives a function that ends that. */
    on<K extends keyof E>(name: K, listener: Listener<E[K]>): () => void;
    /** Resolves with the arguments of the next event of this name. */
    once<K extends keyof E>(name: K): Promise<E[K]>;
    protected emit<K extends keyof E>(name: K, ...args: E[K]): void;
}
