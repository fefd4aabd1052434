import { Bullseye, Spinner } from '@patternfly/react-core';
import { useText } from '../i18n';

export function Loading() {
  const { t } = useText();
  return (
    <Bullseye>
      <Spinner aria-label={t('app.loading')} />
    </Bullseye>
  );
}
