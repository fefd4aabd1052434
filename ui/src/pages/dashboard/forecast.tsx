// When the GPUs of each model are expected to be full.
import { useCapacity } from '../../api/offers';
import { useText } from '../../i18n';
import { forecastOf } from '../../lib/capacity';
import { ErrorAlert } from '../../parts/error';

export function Forecast() {
  const text = useText();
  const { data, error } = useCapacity();
  const gpus = data?.gpus ?? [];
  const several = new Set(gpus.map((g) => g.pool)).size > 1;
  const lines = gpus.map((g) => ({ g, line: forecastOf(g, text, several) }));
  return (
    <>
      <ErrorAlert error={error} />
      {lines.map(({ g, line }) => line && <p key={`${g.pool} ${g.model}`}>{line}</p>)}
      {lines.some(({ g }) => g.trend === 'growing') && <p className="basalt-note">{text.t('room.forecastHelp')}</p>}
    </>
  );
}
