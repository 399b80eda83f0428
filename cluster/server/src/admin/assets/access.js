// Requests to the server, with the token if the server requires one.

const KEY = "purview-token";

let token = sessionStorage.getItem(KEY);
let wanted = () => {};

/** Called when the server requires a token: shows the form for it. */
export function onWanted(act) {
  wanted = act;
}

/** Keeps a token while the page is open. */
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
