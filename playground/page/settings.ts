// Common settings of `spec.behavior`.

export interface Setting {
  title: string;
  /** `undefined` removes the behavior. */
  behavior: object | undefined;
}

const policy = (type: "Percent" | "Pods", value: number, periodSeconds: number): object =>
  ({ type, value, periodSeconds });

const UP = {
  stabilizationWindowSeconds: 0,
  selectPolicy: "Max",
  policies: [policy("Percent", 100, 15), policy("Pods", 4, 15)],
};
const DOWN = {
  stabilizationWindowSeconds: 300,
  selectPolicy: "Max",
  policies: [policy("Percent", 100, 15)],
};

export const SETTINGS: Setting[] = [
  { title: "Write out the defaults", behavior: { scaleUp: UP, scaleDown: DOWN } },
  {
    title: "Scale up fast: ten times the pods every 15 seconds",
    behavior: { scaleUp: { policies: [policy("Percent", 900, 15)] } },
  },
  {
    title: "Scale up slowly: two pods a minute",
    behavior: { scaleUp: { stabilizationWindowSeconds: 60, policies: [policy("Pods", 2, 60)] } },
  },
  {
    title: "Scale down slowly: 10% a minute",
    behavior: { scaleDown: { stabilizationWindowSeconds: 300, policies: [policy("Percent", 10, 60)] } },
  },
  {
    title: "Scale down one pod every five minutes",
    behavior: { scaleDown: { stabilizationWindowSeconds: 300, policies: [policy("Pods", 1, 300)] } },
  },
  {
    title: "Scale down by the smaller of 10% and five pods a minute",
    behavior: {
      scaleDown: { selectPolicy: "Min", policies: [policy("Percent", 10, 60), policy("Pods", 5, 60)] },
    },
  },
  {
    title: "Scale down after one minute instead of five",
    behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
  },
  { title: "Never scale down", behavior: { scaleDown: { selectPolicy: "Disabled" } } },
  {
    title: "Tolerance 5% in both directions (1.33 and newer)",
    behavior: { scaleUp: { tolerance: "0.05" }, scaleDown: { tolerance: "0.05" } },
  },
  { title: "Remove all behavior settings", behavior: undefined },
];
