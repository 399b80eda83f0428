// How messages travel. A transport opens one connection to an address.

/** An open connection, or one that opens. */
export interface Channel {
  /** Sends one message. It does nothing once the connection is closed. */
  send(message: Uint8Array): void;
  /** Ends the connection; `closed` is called. */
  close(): void;
}

/** What a connection tells. `closed` comes once, and last. */
export interface ChannelEvents {
  opened(): void;
  message(bytes: Uint8Array): void;
  /** The code of the close frame, if there was one, and a text for people. */
  closed(code: number | null, detail: string): void;
}

/** Opens a connection. An address that it cannot use ends in `closed`, never in an exception. */
export type Transport = (address: string, events: ChannelEvents) => Channel;
