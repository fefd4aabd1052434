// A QR code on a light background in any theme.
import { path, qr } from '../lib/qr';

export function QrCode({ text, label }: { text: string; label: string }) {
  const grid = qr(text);
  if (!grid) return null; // too long; the text is shown as well
  return (
    <svg
      className="basalt-qr"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${grid.length} ${grid.length}`}
      shapeRendering="crispEdges"
    >
      <rect width={grid.length} height={grid.length} fill="#fff" />
      <path d={path(grid)} fill="#000" />
    </svg>
  );
}
