/** Modules with alerts: their own alerts, and all inside them. */

/** @type {Badges} */
const EMPTY = { own: new Map(), inside: new Map() };

/**
 * { own, inside }: path -> { n, severe }; one alert counts once, however many modules it names.
 * @param {PanelAlert[]} alerts
 * @param {PanelModel["byPath"]} byPath
 * @returns {Badges}
 */
export function badgesOf(alerts, byPath) {
  if (!alerts.length) return EMPTY;
  /** @type {BadgeCounts} */
  const own = new Map();
  /** @type {BadgeCounts} */
  const inside = new Map();
  for (const alert of alerts) {
    /** @type {Set<string>} */
    const above = new Set();
    for (const path of alert.modules) {
      count(own, path, alert);
      for (let row = byPath.get(path); row && !above.has(row.path); row = row.above ?? undefined) above.add(row.path);
    }
    for (const path of above) count(inside, path, alert);
  }
  return { own, inside };
}

/**
 * @param {BadgeCounts} badges
 * @param {string} path
 * @param {PanelAlert} alert
 */
function count(badges, path, { severity }) {
  const badge = badges.get(path) ?? { n: 0, severe: 0 };
  badge.n += 1;
  badge.severe += Number(severity === "severe");
  badges.set(path, badge);
}
