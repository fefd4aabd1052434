// A QR code, with the light zone around it that a camera needs, light in any theme.
import { path, qr } from '../lib/qr';

export function QrCode({ text, label }: { text: string; label: string }) {
  const grid = qr(text);
  if (!grid) return null; // too long: it is there as text too
  const size = grid.length + 8;
  return (
    <svg className="basalt-qr" role="img" aria-label={label} viewBox={`-4 -4 ${size} ${size}`} shapeRendering="crispEdges">
      <rect x="-4" y="-4" width={size} height={size} fill="#fff" />
      <path d={path(grid)} fill="#000" />
    </svg>
  );
}
