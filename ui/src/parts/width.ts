import { useEffect, useRef, useState } from 'react';

/** useWidth returns the current width of an element in pixels; at least 200. */
export function useWidth() {
  const ref = useRef<HTMLDivElement>(null);
  const [width, set] = useState(480);
  useEffect(() => {
    const box = ref.current;
    if (!box || typeof ResizeObserver === 'undefined') return;
    const observer = new ResizeObserver(([e]) => e && set(Math.max(200, Math.floor(e.contentRect.width))));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return { ref, width };
}
