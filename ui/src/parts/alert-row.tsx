// One alert: its severity, message, start, hint, and link.
import { Alert } from '@patternfly/react-core';
import { Link } from 'wouter';
import { useText } from '../i18n';
import { hrefOf, type Alert as Wrong } from '../lib/alert';
import { adviceIn, messageIn } from '../lib/alert-words';
import { formatTime } from '../lib/format';

/** AlertRow is an alert below a heading; level is the level of its title. */
export function AlertRow({ alert: a, level }: { alert: Wrong; level: 'h2' | 'h3' }) {
  const words = useText();
  const { t, has, language } = words;
  const key = `alert.${a.code}`;
  const href = hrefOf(a);
  const title = has(key) ? t(key) : a.code;
  const advice = adviceIn(words, a);
  return (
    <Alert
      component={level}
      variant={a.severity === 'Critical' ? 'danger' : 'warning'}
      isInline
      title={a.name ? `${title}: ${a.name}` : title}
      actionLinks={
        href && (
          <Link href={href} aria-label={t('alert.lookAt', { what: a.name || title })}>
            {t('alert.look')}
          </Link>
        )
      }
    >
      <p>{messageIn(words, a)}</p>
      {advice && (
        <p>
          {t('alert.do')}: {advice}
        </p>
      )}
      {a.since && <p className="basalt-note">{t('alert.since', { at: formatTime(a.since, language) })}</p>}
    </Alert>
  );
}
