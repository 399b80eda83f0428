// Written by a test from proto/client/messages.toml: see there. Do not edit.
/** longest message from a client, bytes */
export const MAX_CLIENT_FRAME = 4096;
/** longest message from a server, bytes */
export const MAX_SERVER_FRAME = 1048576;
/** longest value of a property, bytes */
export const MAX_VALUE_BYTES = 1024;
/** all values of an entity together, bytes */
export const MAX_ENTITY_BYTES = 4096;
/** longest payload of an action, bytes */
export const MAX_ACT = 1024;
/** a reserved plane that no client may name */
export const LIMBO = -2147483648;
/** the version in `Hello` */
export const PROTOCOL_VERSION = 5;
/** Why a message was refused. */
export const ERRORS = {
    /** not of the form `[type, [field, ...]]`: cut off, too deep, or bytes follow */
    1: 'malformed',
    /** no message from a client has this type */
    2: 'unknown_type',
    /** a field is missing, wrong or out of range */
    3: 'bad_field',
    /** not legal in this state of the session */
    4: 'premature',
    /** `seq` is not the last number plus one */
    5: 'out_of_order',
    /** the position is not on the map */
    6: 'out_of_bounds',
    /** there is no such scene */
    7: 'unknown_scene',
    /** no line of the scene has room */
    8: 'no_room',
    /** the payload is longer than 1,024 bytes */
    9: 'act_too_long',
    /** not now; the client may try again */
    10: 'busy',
    /** a `Move` under judged moves, or a `Walk` under trusted ones */
    11: 'wrong_form',
    /** the player is rooted, dead or in a cutscene */
    12: 'may_not_move',
    /** the server moves the player now */
    13: 'pushed',
    /** the move does not begin where the last move ended */
    14: 'displaced',
    /** too many moves began a little off */
    15: 'strayed',
    /** a tile is blocked */
    16: 'blocked',
    /** a diagonal step between two blocked tiles */
    17: 'squeezed',
    /** the next tile lies too high or too low */
    18: 'too_steep',
    /** faster than the player may be */
    19: 'too_fast',
    /** a granted speed was used for too long */
    20: 'overused',
    /** the client's clock went back */
    21: 'clock_back',
    /** more walking was claimed than time has passed */
    22: 'clock_ahead',
    /** the correction was never made */
    23: 'unknown_correction',
    /** only the logic chooses places: no `Teleport`, no `pos` in `Join` */
    24: 'may_not_teleport',
    /** the player of a `Resume` is gone */
    25: 'gone',
    /** the ticket of a `Resume` is not valid */
    26: 'bad_ticket',
    /** neither a line of the scene nor named by the token */
    27: 'private_plane',
    /** the server keeps the subject's older session */
    28: 'taken',
    /** the player's kind has no such property */
    29: 'unknown_property',
    /** only the logic sets it */
    30: 'may_not_write',
    /** the value is not of the property's type */
    31: 'wrong_type',
    /** too long for the property or the entity */
    32: 'value_too_long',
    /** more, or longer, actions, turns, teleports, properties or joins than allowed */
    33: 'too_often',
    /** the game refuses the join or teleport; the text says why */
    34: 'not_admitted',
    /** the scene has no such `sight` */
    35: 'no_such_sight',
};
/** Why a session was closed. */
export const CLOSES = {
    /** the client left */
    1000: 'normal',
    /** the server stops */
    1001: 'going_away',
    /** a text message */
    1003: 'unsupported',
    /** a message above the limit */
    1009: 'too_big',
    /** too many malformed messages */
    4000: 'protocol',
    /** the protocol version is not supported */
    4001: 'version',
    /** the token is missing, wrong or expired */
    4002: 'token',
    /** no `Hello` and `Join` in time */
    4003: 'handshake',
    /** the server received nothing for too long */
    4004: 'heartbeat',
    /** too many messages */
    4005: 'rate',
    /** the client did not read */
    4006: 'slow',
    /** no room, or too many connections or failed tokens from the address */
    4007: 'overload',
    /** the server failed */
    4008: 'internal',
    /** a newer connection or session of the subject counts */
    4009: 'replaced',
    /** this gateway stops, other gateways go on */
    4010: 'elsewhere',
    /** an operator ended the session, perhaps for a while */
    4011: 'kicked',
    /** the subject has too many sessions (8 by default) */
    4012: 'subject_full',
};
