// Asks the server, with the token where it wants one.

const KEY = "purview-token";

let token = sessionStorage.getItem(KEY);
let wanted = () => {};

/** What to do when the server wants a token: show where to say it. */
export function onWanted(act) {
  wanted = act;
}

/** Takes a token, for as long as the page is open. */
export function setToken(text) {
  token = text.trim();
  sessionStorage.setItem(KEY, token);
}

/** `fetch` with the token. */
export async function get(path, options = {}) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) wanted();
  return answer;
}
