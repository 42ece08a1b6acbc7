/**
 * The icons in use, each from its own module: the package's index would pull six thousand into
 * every build.
 */
export { default as IconAlertTriangle } from "tabler-icons/IconAlertTriangle.mjs";
export { default as IconArchive } from "tabler-icons/IconArchive.mjs";
export { default as IconArchiveOff } from "tabler-icons/IconArchiveOff.mjs";
export { default as IconArrowDown } from "tabler-icons/IconArrowDown.mjs";
export { default as IconArrowsMaximize } from "tabler-icons/IconArrowsMaximize.mjs";
export { default as IconArrowsMinimize } from "tabler-icons/IconArrowsMinimize.mjs";
export { default as IconArrowUp } from "tabler-icons/IconArrowUp.mjs";
export { default as IconBan } from "tabler-icons/IconBan.mjs";
export { default as IconCheck } from "tabler-icons/IconCheck.mjs";
export { default as IconChevronDown } from "tabler-icons/IconChevronDown.mjs";
export { default as IconChevronRight } from "tabler-icons/IconChevronRight.mjs";
export { default as IconCircleCheck } from "tabler-icons/IconCircleCheck.mjs";
export { default as IconCircleDashed } from "tabler-icons/IconCircleDashed.mjs";
export { default as IconCircleX } from "tabler-icons/IconCircleX.mjs";
export { default as IconClockHour4 } from "tabler-icons/IconClockHour4.mjs";
export { default as IconCopy } from "tabler-icons/IconCopy.mjs";
export { default as IconDots } from "tabler-icons/IconDots.mjs";
export { default as IconDownload } from "tabler-icons/IconDownload.mjs";
export { default as IconEqual } from "tabler-icons/IconEqual.mjs";
export { default as IconFlask } from "tabler-icons/IconFlask.mjs";
export { default as IconHourglassLow } from "tabler-icons/IconHourglassLow.mjs";
export { default as IconKeyboard } from "tabler-icons/IconKeyboard.mjs";
export { default as IconListNumbers } from "tabler-icons/IconListNumbers.mjs";
export { default as IconLoader2 } from "tabler-icons/IconLoader2.mjs";
export { default as IconLogout } from "tabler-icons/IconLogout.mjs";
export { default as IconMoon } from "tabler-icons/IconMoon.mjs";
export { default as IconPackageExport } from "tabler-icons/IconPackageExport.mjs";
export { default as IconPlayerPause } from "tabler-icons/IconPlayerPause.mjs";
export { default as IconPlayerPlay } from "tabler-icons/IconPlayerPlay.mjs";
export { default as IconPlugConnectedX } from "tabler-icons/IconPlugConnectedX.mjs";
export { default as IconRefresh } from "tabler-icons/IconRefresh.mjs";
export { default as IconSearch } from "tabler-icons/IconSearch.mjs";
export { default as IconServer } from "tabler-icons/IconServer.mjs";
export { default as IconSun } from "tabler-icons/IconSun.mjs";
export { default as IconTarget } from "tabler-icons/IconTarget.mjs";
export { default as IconUser } from "tabler-icons/IconUser.mjs";
export { default as IconWaveSine } from "tabler-icons/IconWaveSine.mjs";
