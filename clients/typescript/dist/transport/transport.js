// How messages travel. A transport opens one connection to an address.
export {};
