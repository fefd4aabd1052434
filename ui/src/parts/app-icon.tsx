// The pictogram of an app: neutral drawings of this project, no logos of products.
import type { Schemas } from '../api/client';

type Icon = NonNullable<Schemas['AppSpec']['icon']>;

/** Outlines in a square of 24 × 24, drawn with a stroke of 1.5. */
const outlines: Record<Icon, string> = {
  server: 'M4 4h16v7H4zM4 13h16v7H4zM7 7.5h.01M7 16.5h.01M11 7.5h6M11 16.5h6',
  notebook: 'M6 3h13v18H6zM6 3v18M3.5 7H6M3.5 12H6M3.5 17H6M10 8h5M10 12h5',
  flask: 'M9 3h6M10 3v6l-5.5 10a1.3 1.3 0 0 0 1.2 2h12.6a1.3 1.3 0 0 0 1.2-2L14 9V3M7.5 15h9',
  chat: 'M4 4h16v12h-8l-5 4.5V16H4zM8 8.5h8M8 12h5',
  picture: 'M3 5h18v14H3zM3 16l5-5 4 4 3-3 6 6M15.5 9a1 1 0 1 0 2 0a1 1 0 1 0-2 0',
  chart: 'M4 3v18h17M8 17v-5M12 17V8M16 17v-7M20 17V5',
  database: 'M4 6c0-4 16-4 16 0s-16 4-16 0v12c0 4 16 4 16 0V6M4 12c0 4 16 4 16 0',
  cube: 'M12 2.5l8.5 4.8v9.4L12 21.5l-8.5-4.8V7.3zM3.5 7.3L12 12l8.5-4.7M12 12v9.5',
};

/** appIcons are the names of all pictograms. */
export const appIcons = Object.keys(outlines) as Icon[];

export const AppIcon = ({ icon = 'cube' }: { icon?: Icon }) => (
  <svg
    className="basalt-app-icon"
    data-icon={icon}
    viewBox="0 0 24 24"
    width="32"
    height="32"
    fill="none"
    stroke="currentColor"
    strokeWidth="1.5"
    strokeLinecap="round"
    strokeLinejoin="round"
    aria-hidden="true"
  >
    <path d={outlines[icon] ?? outlines.cube} />
  </svg>
);
