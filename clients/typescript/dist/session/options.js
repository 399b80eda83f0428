// How a player joins and reconnects.
import { PurviewError, ValueError } from '../errors.js';
import { webSocket } from '../transport/websocket.js';
const RETRY = { first: 100, most: 2_000, attempt: 12_000, patience: 60_000 };
export function settings(options) {
    const addresses = typeof options.addresses === 'string' ? [options.addresses] : [...options.addresses];
    if (addresses.length === 0)
        throw new ValueError('there is no address to connect to');
    const { token } = options;
    return {
        addresses,
        token: async () => {
            try {
                return await (typeof token === 'function' ? token() : token);
            }
            catch (cause) {
                throw new PurviewError('token', `no token: ${String(cause)}`, { cause });
            }
        },
        transport: options.transport ?? webSocket(),
        retry: { ...RETRY, ...options.retry },
        rejoin: options.rejoin ?? true,
        random: options.random ?? Math.random,
    };
}
