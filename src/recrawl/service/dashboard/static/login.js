// Signs in with the code of a link, which stands behind # so that it is in no log.
"use strict";
const code = location.hash.slice(1);
if (code) {
  history.replaceState(null, "", location.pathname);
  document.getElementById("key").value = code;
  document.getElementById("sign-in").submit();
}
