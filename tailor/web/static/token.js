// A link to sign in with: the token stands after the #, which is never sent. It is filled in here, and posted with the
// name. Then it goes from the address, so that it is neither bookmarked nor read over a shoulder.

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  document.querySelector("input[name=secret]").value = token;
  history.replaceState(null, "", location.pathname + location.search);
}
