import { NotificationBadge } from '@patternfly/react-core';
import { useLocation } from 'wouter';
import { useAlerts } from '../api/cluster';
import { useText } from '../i18n';

/** AlertsBell shows operators the number of alerts on every page. */
export function AlertsBell() {
  const { t, count } = useText();
  const [, go] = useLocation();
  const { critical = 0, warning = 0 } = useAlerts({ limit: 5 }).data ?? {};
  const n = critical + warning;
  return (
    <NotificationBadge
      id="alerts-bell"
      variant={critical > 0 ? 'attention' : n > 0 ? 'unread' : 'read'}
      count={n}
      aria-label={
        n > 0
          ? `${t('alert.title')}: ${n} (${count('alert.critical', critical)}, ${count('alert.warning', warning)})`
          : `${t('alert.title')}: ${t('alert.none')}`
      }
      onClick={() => go('/alerts')}
    />
  );
}
