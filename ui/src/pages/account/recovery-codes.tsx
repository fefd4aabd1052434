import { Alert, Button } from '@patternfly/react-core';
import { useText } from '../../i18n';

/** RecoveryCodes shows the codes once, when the first second factor is set up. */
export function RecoveryCodes({ codes, onClose }: { codes: string[]; onClose: () => void }) {
  const { t } = useText();
  return (
    <Alert isInline isLiveRegion component="h3" variant="success" title={t('acc.recovery')}>
      <div className="basalt-stack">
        <p>{t('acc.recoveryHelp')}</p>
        <ul className="basalt-codes" aria-label={t('acc.recovery')}>
          {codes.map((c) => (
            <li key={c}>
              <code>{c}</code>
            </li>
          ))}
        </ul>
        <div>
          <Button variant="secondary" onClick={onClose}>
            {t('common.close')}
          </Button>
        </div>
      </div>
    </Alert>
  );
}
