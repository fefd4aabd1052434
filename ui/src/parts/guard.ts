// Asks for confirmation before unsaved changes are left: for another site, or by a link to another page.
import { useEffect } from 'react';
import { useText } from '../i18n';

export function useGuard(on: boolean) {
  const { t } = useText();
  useEffect(() => {
    if (!on) return;
    const unload = (e: BeforeUnloadEvent) => e.preventDefault();
    const click = (e: MouseEvent) => {
      const link = e.target instanceof Element ? e.target.closest('a[href]') : null;
      if (!link || link.getAttribute('target') === '_blank' || e.metaKey || e.ctrlKey) return;
      if (confirm(t('form.leave'))) return;
      e.preventDefault();
      e.stopPropagation();
    };
    addEventListener('beforeunload', unload);
    document.addEventListener('click', click, true);
    return () => {
      removeEventListener('beforeunload', unload);
      document.removeEventListener('click', click, true);
    };
  }, [on, t]);
}
