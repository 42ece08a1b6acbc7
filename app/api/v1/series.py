"""Placeholder until the routes land."""

from fastapi import APIRouter

router = APIRouter(tags=["series"])
