/* Choose the theme before anything is drawn. */
try {
  const theme = localStorage.getItem("rlvitals-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* storage is turned off */ }
