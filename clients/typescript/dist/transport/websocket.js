// WebSocket: browsers, Node 22 and later, or any implementation that is given.
const OPEN = 1;
/** Messages by WebSocket; `ws://host:port/` or `wss://host:port/`. */
export function webSocket(given) {
    return (address, events) => {
        const Class = given ?? globalThis.WebSocket;
        if (!Class)
            return failed(events, 'there is no WebSocket here: pass one, or use the TCP transport');
        let socket;
        try {
            socket = new Class(address);
        }
        catch (error) {
            return failed(events, `${address}: ${String(error)}`);
        }
        return connected(socket, address, events);
    };
}
function failed(events, detail) {
    queueMicrotask(() => events.closed(null, detail));
    return { send() { }, close() { } };
}
function connected(socket, address, events) {
    let over = false;
    let why = '';
    const end = (code, detail) => {
        if (over)
            return;
        over = true;
        events.closed(code, detail);
    };
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
        if (!over)
            events.opened();
    };
    socket.onmessage = (event) => {
        if (over)
            return;
        if (event.data instanceof ArrayBuffer)
            events.message(new Uint8Array(event.data));
        else {
            end(null, 'a text came where only binary messages may come');
            socket.close();
        }
    };
    socket.onerror = (event) => {
        why ||= event.message ?? 'the connection failed';
    };
    socket.onclose = (event) => {
        // 1005 and 1006: no close frame came.
        const code = event.code === 1005 || event.code === 1006 ? null : event.code;
        end(code, event.reason || why || (code === null ? `${address}: the connection ended` : ''));
    };
    return {
        send: (message) => {
            if (!over && socket.readyState === OPEN)
                socket.send(message);
        },
        close: () => {
            socket.close();
            end(null, 'closed by the client');
        },
    };
}
