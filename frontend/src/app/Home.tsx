import { useInfiniteQuery } from "@tanstack/react-query";
import { experimentsQuery } from "@/api/queries";
import { NewestExperiments } from "@/features/experiments/NewestExperiments";
import { HomePage } from "@/features/home/HomePage";

/** Home, with the newest experiments of all projects. */
export function Home() {
  const { data } = useInfiniteQuery(experimentsQuery(null, {}));
  const hasExperiments = data === undefined ? null : (data.pages[0]?.items.length ?? 0) > 0;
  return (
    <HomePage hasExperiments={hasExperiments}>
      <NewestExperiments />
    </HomePage>
  );
}
